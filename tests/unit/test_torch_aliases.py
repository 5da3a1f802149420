"""Views that a compiled function returns lie where torch's lie, also where sizes vary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ascendsched import torch as back_end  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_torch")]


def _transpose_in_place(x: Any, y: Any) -> Any:
    x.t_()
    return x[1:]


#: Functions of x, [n, 5], and y, [3, 4], whose first result is a view of x or y.
VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "rows behind a size": lambda x, y: (x[y.shape[0] :], y * 2 + 1),
    "columns at a size": lambda x, y: (x[:, x.shape[0] - 6 : x.shape[0] - 5], y * 2 + 1),
    "elements behind a size": lambda x, y: (x.view(-1)[x.shape[0] :], y * 2 + 1),
    "expanded": lambda x, y: (y.expand(x.shape[0], -1, -1), y * 2 + 1),
    "windows": lambda x, y: (x.unfold(0, 2, 1), y * 2 + 1),
    "rows of what was changed": lambda x, y: (x.add_(1)[x.shape[0] - 6 :], y * 2 + 1),
    "after a change of strides": lambda x, y: (_transpose_in_place(x, y), y * 2 + 1),
    "alone": lambda x, y: (x[y.shape[0] :],),
}


@pytest.mark.parametrize("is_dynamic", [None, False, True], ids=["automatic", "static", "dynamic"])
@pytest.mark.parametrize("name", VIEWS)
def test_view_of_an_argument_is_a_view_of_the_same_elements(name: str, is_dynamic: bool | None) -> None:
    function = VIEWS[name]
    run = torch.compile(function, backend=back_end.backend, dynamic=is_dynamic)
    y = torch.randn(3, 4)
    for n in (7, 8, 8):
        x = torch.randn(n, 5)
        expected = x.clone()
        got, want = run(x, y), function(expected, y)
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(x, expected)
        base, other = (x, expected) if name != "expanded" else (y, y)
        assert got[0].data_ptr() - base.data_ptr() == want[0].data_ptr() - other.data_ptr()
        assert got[0].stride() == want[0].stride()
    assert back_end.stats()["fallbacks"] == {}
