"""LSTM and GRU at odd sizes against float64: plain cells in one pass, others by parts, weights to and fro."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper as h

import ascendsched as asc
from tests.unit.onnx_models import info, model

GATES = {"LSTM": 4, "GRU": 3}
SIZES = [(1, 1, 1, 1), (1, 2, 3, 17), (5, 1, 4, 3), (7, 5, 2, 16), (4, 3, 16, 33), (3, 4, 5, 70), (2, 1, 9, 129)]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def hard_sigmoid(x: np.ndarray) -> np.ndarray:
    return np.clip(0.2 * x + 0.5, 0, 1)


def lstm_step(x, w, r, b, state, cell, gate, peepholes):
    hidden = state.shape[1]
    i, o, f, c = np.split(x @ w.T + state @ r.T + b[: 4 * hidden] + b[4 * hidden :], 4, axis=1)
    p_i, p_o, p_f = np.split(peepholes, 3)
    cell_after = gate(f + p_f * cell) * cell + gate(i + p_i * cell) * np.tanh(c)
    return gate(o + p_o * cell_after) * np.tanh(cell_after), cell_after


def gru_step(x, w, r, b, state, gate, resets_after):
    hidden = state.shape[1]
    from_x = x @ w.T + b[: 3 * hidden]
    z, reset = (
        gate(from_x[:, n : n + hidden] + state @ r[n : n + hidden].T + b[3 * hidden + n : 4 * hidden + n])
        for n in (0, hidden)
    )
    r_c, b_c = r[2 * hidden :], b[5 * hidden :]
    linear = reset * (state @ r_c.T + b_c) if resets_after else (reset * state) @ r_c.T + b_c
    return (1 - z) * np.tanh(from_x[:, 2 * hidden :] + linear) + z * state


def reference(op, feeds, constants, directions, reverse, lengths, gate, resets_after):
    """All states, [steps, directions, batch, hidden], and the last ones."""
    x = feeds["x"].astype(np.float64)
    steps, batch, _ = x.shape
    k = {name: value.astype(np.float64) for name, value in constants.items()}
    hidden = k["r"].shape[2]
    y = np.zeros((steps, directions, batch, hidden))
    last = np.zeros((directions, batch, hidden))
    for d in range(directions):
        for b in range(batch):
            state, cell = k["h"][d, b : b + 1], k["c"][d, b : b + 1]
            times = range(lengths[b])
            for t in reversed(times) if d == 1 or reverse else times:
                operands = (x[t, b : b + 1], k["w"][d], k["r"][d], k["b"][d], state)
                if op == "LSTM":
                    state, cell = lstm_step(*operands, cell, gate, k["p"][d])
                else:
                    state = gru_step(*operands, gate, resets_after)
                y[t, d, b] = state[0]
            last[d, b] = state[0]
    return y, last


def check(
    op,
    size,
    direction="forward",
    *,
    lengths=None,
    hard=False,
    peepholes=False,
    resets_after=True,
    fed=False,
    at_rest=False,
):
    rng = np.random.default_rng(sum(size))
    steps, batch, width, hidden = size
    directions, n = 2 if direction == "bidirectional" else 1, GATES[op] * hidden

    def values(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32) / 2

    constants = {"w": values(directions, n, width), "r": values(directions, n, hidden), "b": values(directions, 2 * n)}
    lengths = [steps] * batch if lengths is None else lengths
    constants |= {"l": np.array(lengths, np.int32), "h": values(directions, batch, hidden)}
    constants |= {"c": values(directions, batch, hidden), "p": values(directions, 3 * hidden) * peepholes}
    feeds = {"x": values(steps, batch, width) * 4}
    if at_rest:
        constants["h"] *= 0
    names = ["x", "w", "r", "b", "l", "h", *(["c", "p" if peepholes else ""] if op == "LSTM" else [])]
    attributes = {"activations": (["HardSigmoid", "Tanh", "Tanh"][: GATES[op] - 1]) * directions} if hard else {}
    if op == "GRU":
        attributes["linear_before_reset"] = int(resets_after)
    node = h.make_node(op, names, ["y", "y_h"], hidden_size=hidden, direction=direction, **attributes)
    kept = {name: value for name, value in constants.items() if name in names}
    if fed:
        feeds |= {name: kept.pop(name) for name in ("w", "r")}
    made = model([node], [info(name, shape=v.shape) for name, v in feeds.items()], [info("y"), info("y_h")], kept)
    gate = hard_sigmoid if hard else sigmoid
    want = reference(op, feeds, constants, directions, direction == "reverse", lengths, gate, resets_after)
    for mode in ("host", "sink"):
        got = asc.compile(made, mode=mode, threads=1).run(feeds)
        for name, value in zip(("y", "y_h"), want, strict=True):
            np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=2e-6 * np.sqrt(hidden + width))


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_plain_cells_agree_at_odd_sizes(op, size, direction):
    check(op, size, direction)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("lengths", [[6, 0, 3], [1, 6, 5]])
def test_states_stay_where_sequences_have_ended(op, lengths):
    check(op, (6, 3, 4, 19), "bidirectional", lengths=lengths)
    check(op, (6, 3, 4, 19), "reverse", lengths=lengths, hard=True)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("size", SIZES)
def test_other_cells_agree_at_odd_sizes(op, size):
    check(op, size, "bidirectional", hard=True)
    check(op, size, "bidirectional", resets_after=False, peepholes=op == "LSTM")
    check(op, size, "bidirectional", fed=True)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("size", SIZES)
def test_a_first_state_of_zeros_adds_nothing(op, size):
    check(op, size, "bidirectional", at_rest=True)
    check(op, size, "reverse", at_rest=True, hard=True, resets_after=False, fed=True)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("huge", [np.inf, np.nan])
def test_weights_that_are_no_numbers_show_in_a_first_state_of_zeros_too(op, huge):
    n = GATES[op] * 3
    r = np.ones((1, n, 3), np.float32)
    r[0, -1, 1] = huge
    node = h.make_node(op, ["x", "w", "r"], ["y"], hidden_size=3)
    constants = {"w": np.ones((1, n, 2), np.float32), "r": r}
    made = model([node], [info("x", shape=(1, 1, 2))], [info("y")], constants)
    got = asc.compile(made, threads=1).run({"x": np.ones((1, 1, 2), np.float32)})["y"]
    assert np.isnan(got[..., 2]).all()


@pytest.mark.parametrize("op", GATES)
def test_saturated_gates_give_no_nan(op):
    hidden, n = 5, GATES[op] * 5
    huge = np.array([0, 200, -200, 3e38, -3e38], np.float32)
    constants = {
        "w": np.repeat(huge, GATES[op]).reshape(1, n, 1),
        "r": np.zeros((1, n, hidden), np.float32),
        "h": np.full((1, 1, hidden), 0.5, np.float32),
    }
    extra = {"linear_before_reset": 1} if op == "GRU" else {}
    node = h.make_node(op, ["x", "w", "r", "", "", "h"], ["y"], hidden_size=hidden, **extra)
    made = model([node], [info("x", shape=(3, 1, 1))], [info("y")], constants)
    got = asc.compile(made).run({"x": np.array([1, -1, 1], np.float32).reshape(3, 1, 1)})["y"]
    assert np.isfinite(got).all()
    assert (np.abs(got) <= 1).all()
    assert np.isnan(asc.compile(made).run({"x": np.full((3, 1, 1), np.nan, np.float32)})["y"]).all()
