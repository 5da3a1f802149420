"""Learns bucket sizes from the lengths that pass."""

from __future__ import annotations

from bisect import insort

from ascendsched.tuning.partition import best_sizes, padding_of

MAX_BINS = 512  # distinct lengths remembered; beyond them neighbours share a bin
WINDOW = 8192  # lengths remembered; then the old ones count half
FIRST_LESSON = 16  # lengths before sizes are learned
LONGEST_PAUSE = 512  # lengths between two lessons
MIN_SAVING = 0.02  # of the given positions that new sizes must save: each is a schedule to resolve and load


class SizeLearner:
    """Sizes for the lengths seen so far, at most `max_count`, always with the largest length.

    Costs a dictionary entry per length, and a pass over the histogram at lessons, which grow rarer. Not thread-safe.
    """

    def __init__(self, max_count: int) -> None:
        self.max_count = max_count
        self.sizes: list[int] = []
        self.changes = 0
        self.lessons = 0
        self.histogram: dict[int, int] = {}
        self._total = 0
        self._pause = self._wait = FIRST_LESSON

    def observe(self, length: int) -> None:
        """Count a length, and learn when it is time."""
        self.histogram[length] = self.histogram.get(length, 0) + 1
        self._total += 1
        self._wait -= 1
        if not self.sizes or length > self.sizes[-1]:
            self._grow(length)
        if self._wait <= 0:
            self._learn()

    def _grow(self, length: int) -> None:
        """A new maximum: a size of its own while there is room, else the last size moves up."""
        if len(self.sizes) >= self.max_count:
            self.sizes.pop()
        insort(self.sizes, length)
        self.changes += 1

    def _learn(self) -> None:
        self._pause = self._wait = min(self._pause * 2, LONGEST_PAUSE)
        self.lessons += 1
        if len(self.histogram) > MAX_BINS:
            self._merge_bins()
        if self._total > WINDOW:
            self._forget_half()
        sizes = best_sizes(self.histogram, self.max_count)
        saving = padding_of(self.histogram, self.sizes) - padding_of(self.histogram, sizes)
        if sizes != self.sizes and saving >= MIN_SAVING:
            self.sizes = sizes
            self.changes += 1

    def _merge_bins(self) -> None:
        """Each bin joins the next larger one, so that half of them are left."""
        lengths = sorted(self.histogram, reverse=True)
        counts = [self.histogram[length] for length in lengths]
        self.histogram = {lengths[i]: sum(counts[i : i + 2]) for i in range(0, len(lengths), 2)}

    def _forget_half(self) -> None:
        """The largest length stays, however rare."""
        largest = max(self.histogram)
        self.histogram = {
            length: count // 2 for length, count in self.histogram.items() if count > 1 or length == largest
        }
        self.histogram[largest] = max(1, self.histogram[largest])
        self._total = sum(self.histogram.values())
