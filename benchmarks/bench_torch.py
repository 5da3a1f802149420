"""How fast are torch models through ``torch.compile`` with our back end, and what does a call of ours cost?

Decoders of Hugging Face of several widths generate token by token, with a cache that grows and with one of fixed
capacity; an encoder and a ResNet-18 take batches of several sizes. Beside eager torch, ``aot_eager`` and ``inductor``,
turn by turn on one thread, random weights. The time of dynamo's guards and of Hugging Face's own Python is in every
row. The last tables are ours over the others for all cases, and one tiny model beside a back end that returns
constants: what is more than that is ours, kernels included. Compiling takes most of the half hour; ``--only`` chooses.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

from command import main
from harness import Effort, Figures, Subject, Table, compare
from torch_models import STEPS, Decoding, bert, gpt2, llama, resnet18

WIDTHS = (64, 128, 256, 768)
DECODES = ((1, 8), (1, 200), (4, 8))  # batch, prompt
TEXTS = ((1, 8), (1, 128), (4, 32), (4, 128))  # batch, length
IMAGES = ((1, 64), (1, 224), (4, 64), (4, 224))  # batch, side
OURS = "ascendsched"

Runs = dict[str, tuple[Any, Any]]  # by back end: the model, and what runs it


def _prepare() -> tuple[Any, Any]:
    import torch
    import transformers

    logging.getLogger("transformers").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    # torch counts the graphs of all back ends together, since they compile the same code.
    torch._dynamo.config.recompile_limit = 256
    return torch, transformers


def _runs(torch: Any, make: Callable[[], Any]) -> Runs:
    """Equal models, one for each back end."""
    from ascendsched.torch import backend

    torch._dynamo.reset()
    model = make()
    runs: Runs = {"eager": (model, model)}
    for label, chosen in ((OURS, backend), ("aot_eager", "aot_eager"), ("inductor", "inductor")):
        own = make()
        own.load_state_dict(model.state_dict())
        options = {"options": {"threads": 1}} if label == OURS else {}
        runs[label] = own, torch.compile(own, backend=chosen, **options)
    return runs


def measure_decoders(effort: Effort) -> Iterator[Table]:
    """A table per decoder, width, kind of cache, batch and prompt."""
    torch, transformers = _prepare()
    tables = []
    for width in WIDTHS[:1] if effort.is_quick else WIDTHS:
        for name, make in (("Llama", llama), ("GPT-2", gpt2)):
            for is_static in (False, True):
                runs = _runs(torch, partial(make, transformers, width))
                for batch, prompt in DECODES[:1] if effort.is_quick else DECODES:
                    subjects = []
                    for label, (model, run) in runs.items():
                        d = Decoding(torch, transformers, model, run, (is_static, batch, prompt))
                        subjects.append(Subject(label, d.advance, STEPS, d.result, around=d.ready))
                    kind = "fixed" if is_static else "growing"
                    title = f"{name} {width}, {kind} cache, {batch} x {prompt}"
                    reference = subjects[0].result()  # type: ignore[misc]
                    tables.append(compare(title, "step", subjects, reference, effort, calls=1, rate="steps/s"))
                    yield tables[-1]
    yield _ratios("decoders", tables)


def _measure_batches(
    torch: Any, title: str, make: Callable[[], Any], feeds: dict[str, Any], first: Callable[[Any], Any], effort: Effort
) -> Iterator[Table]:
    runs = _runs(torch, make)
    for name, feed in feeds.items():

        def call(run: Any, feed: Any = feed) -> Any:
            with torch.no_grad():
                return first(run(*feed)).numpy()

        subjects = [Subject(label, partial(call, run)) for label, (_, run) in runs.items()]
        yield compare(f"{title}, {name}", "call", subjects, call(runs["eager"][1]), effort)


def measure_encoders(effort: Effort) -> Iterator[Table]:
    """A table per width, batch and length of a BERT whose last text is half padding."""
    torch, transformers = _prepare()
    tables = []
    for width in WIDTHS[:1] if effort.is_quick else WIDTHS:
        feeds = {}
        for batch, length in TEXTS[:2] if effort.is_quick else TEXTS:
            mask = torch.ones(batch, length, dtype=torch.long)
            mask[-1, length // 2 :] = 0
            feeds[f"{batch} x {length}"] = (torch.randint(0, 128, (batch, length)), mask)
        make = partial(bert, transformers, width)
        for table in _measure_batches(torch, f"BERT {width}", make, feeds, lambda found: found[0], effort):
            tables.append(table)
            yield table
    yield _ratios("encoders", tables)


def measure_resnet(effort: Effort) -> Iterator[Table]:
    """A table per batch and size of images."""
    torch, _ = _prepare()
    shapes = IMAGES[:1] if effort.is_quick else IMAGES
    feeds = {f"{batch} x {side}": (torch.randn(batch, 3, side, side),) for batch, side in shapes}
    make = partial(resnet18, torch)
    tables = list(_measure_batches(torch, "ResNet-18", make, feeds, lambda found: found, effort))
    yield from tables
    yield _ratios("ResNet-18", tables)


def _ratios(title: str, tables: list[Table]) -> Table:
    """Times of the others over ours: medians, and in parentheses the least times."""
    figures = Figures(f"{title}: times as fast as", "", [])
    figures.headings = ("eager", "aot_eager", "inductor", "step or call, us")
    for table in tables:
        ours = table.subject(OURS)
        row: list[Any] = []
        for label in figures.headings[:3]:
            other = table.subject(label)
            least = min(other.times_us) / min(ours.times_us)
            row.append(f"{other.median_us / ours.median_us:.2f} ({least:.2f})")
        figures.rows.append((table.title, [*row, ours.median_us]))
    return figures


def _constant(module: Any, example_inputs: Any) -> Any:
    """A back end whose graphs return zeros."""
    import torch
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    (results,) = next(node for node in module.graph.nodes if node.op == "output").args
    with unset_fake_temporarily():
        values = [torch.zeros(tuple(result.meta["val"].shape)) for result in results]

    def run(args: list[Any]) -> list[Any]:
        args.clear()
        return list(values)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def measure_call(effort: Effort) -> Iterator[Table]:
    """One tiny model beside a back end that returns constants."""
    torch, _ = _prepare()
    from torch._dynamo.backends.common import aot_autograd

    from ascendsched.torch import backend

    torch._dynamo.reset()
    layers = [torch.nn.Linear(8, 8), torch.nn.ReLU()] * 2
    model = torch.nn.Sequential(*layers)
    x = torch.ones(1, 8)
    subjects = []
    for label, chosen in ((OURS, backend), ("constants", aot_autograd(fw_compiler=_constant))):
        run = torch.compile(model, backend=chosen)

        def call(run: Any = run) -> Any:
            with torch.no_grad():
                return run(x)

        want = lambda: model(x).detach().numpy()  # noqa: E731
        checked = want if label == "constants" else (lambda call=call: call().numpy())
        subjects.append(Subject(label, call, result=checked))
    subjects[1].call()
    table = compare("one call of a tiny model", "call", subjects, model(x).detach().numpy(), effort)
    table.notes.append(f"ours over constants: {subjects[0].median_us - subjects[1].median_us:.2f} us of the medians")
    yield table


PARTS = {
    "decoders": measure_decoders,
    "encoders": measure_encoders,
    "resnet": measure_resnet,
    "call": measure_call,
}


def measure(effort: Effort) -> Iterator[Table]:
    """All tables; none without torch and transformers."""
    if not (find_spec("torch") and find_spec("transformers")):
        print("torch or transformers is not installed: nothing to measure")
        return
    for part in PARTS.values():
        yield from part(effort)


if __name__ == "__main__":
    sys.exit(main(__doc__, PARTS, selects=True))
