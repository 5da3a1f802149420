"""Inputs for the commands that run a model: arrays from files, or random ones of the declared or given shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import click
import numpy as np
from numpy.typing import NDArray

from ascendsched.arrays import random_array
from ascendsched.bounded import read_array, reason
from ascendsched.errors import GraphError

F = TypeVar("F", bound=Callable[..., Any])

INPUT_HELP = "Read an input from a file; may be repeated."
SHAPE_HELP = "Shape of a random input; may be repeated."
SEED_HELP = "Seed of the random inputs."


class Declared(Protocol):
    """A declared input of an executable."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int | str | None, ...] | None: ...


def input_options(function: F) -> F:
    """Adds the options that say what the inputs of a model are."""
    function = click.option("--seed", type=int, default=0, show_default=True, help=SEED_HELP)(function)
    names = ("--shape", "--shapes", "shapes")
    function = click.option(*names, multiple=True, metavar="NAME=1,3,224,224", help=SHAPE_HELP)(function)
    return click.option("--input", "files", multiple=True, metavar="NAME=FILE.npy", help=INPUT_HELP)(function)


def parse_pairs(values: Iterable[str], option: str) -> dict[str, str]:
    """["x=a", "y=b"] as a dictionary; a usage error where the "=" is missing or a name comes twice."""
    pairs: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise click.BadParameter(f"'{text[:80]}' is not NAME=VALUE", param_hint=option)
        if name in pairs:
            raise click.BadParameter(f"'{name}' is given twice", param_hint=option)
        pairs[name] = value
    return pairs


def parse_shape(text: str, name: str, option: str = "--shape") -> tuple[int, ...]:
    """ "1,3,224,224" as a tuple; "()" is a scalar."""
    if text == "()":
        return ()
    try:
        shape = tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        message = f"shape of '{name}' must be like 1,3,224,224: '{text}'"
        raise click.BadParameter(message, param_hint=option) from None
    if any(dim < 0 for dim in shape):
        raise click.BadParameter(f"shape of '{name}' has a negative dimension: '{text}'", param_hint=option)
    return shape


def make_inputs(
    declared: Iterable[Declared],
    files: Mapping[str, str],
    shapes: Mapping[str, str],
    seed: int,
    option: str = "--shape",
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Arrays for every input, and notes on what was assumed.

    A symbol that one given shape fixes holds for the other inputs too; dimensions that nothing fixes become 1.
    `option` is the one that gives shapes, for messages.

    Raises
    ------
    GraphError
        For names that the model lacks, unreadable files and shapes of the wrong rank.
    """
    wanted = {item.name: item for item in declared}
    files, shapes = _respell(files, wanted), _respell(shapes, wanted)
    for name in [*files, *shapes]:
        if name not in wanted:
            raise GraphError(f"[run] the model has no input '{name}'; its inputs are {', '.join(wanted) or 'none'}")
    given = {name: _load(path, name) for name, path in files.items()}
    fixed: dict[str, tuple[int, ...]] = {name: parse_shape(text, name, option) for name, text in shapes.items()}
    for name, array in given.items():
        if fixed.setdefault(name, array.shape) != array.shape:
            raise GraphError(f"[run] '{name}': {option} says {fixed[name]}, the file holds {array.shape}; drop one")
    symbols = _bind_symbols(wanted, fixed)
    random, notes = np.random.default_rng(seed), []
    arrays: dict[str, NDArray[Any]] = {}
    for name, item in wanted.items():
        if name in given:
            arrays[name] = given[name]
            continue
        shape = fixed.get(name)
        if shape is None:
            shape, assumed = _default_shape(item, symbols)
            if assumed:
                notes.append(f"'{name}': {assumed} taken as 1; set it with {option} {name}=…")
        arrays[name] = random_array(random, item.dtype, shape)
    return arrays, notes


def _respell(pairs: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Pairs that were cut at the first "=", cut at a later one where that gives the name of an input."""
    found = {}
    for name, value in pairs.items():
        text = f"{name}={value}"
        fitting = [known for known in names if text.startswith(f"{known}=")]
        longest = max([name, *fitting], key=len)
        found[longest] = text[len(longest) + 1 :]
    return found


def _load(path: str, name: str) -> NDArray[Any]:
    try:
        return read_array(path)
    except (OSError, ValueError) as error:
        what = f"[run] cannot read '{path}' for input '{name}': {reason(error)}"
        raise GraphError(f"{what}; write it with numpy.save") from None


def _bind_symbols(wanted: Mapping[str, Declared], fixed: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    symbols: dict[str, int] = {}
    for name, shape in fixed.items():
        declared = wanted[name].shape
        if declared is None:
            continue
        if len(declared) != len(shape):
            raise GraphError(f"[run] '{name}' has rank {len(declared)}, got shape {shape}; give every dimension")
        for dim, value in zip(declared, shape, strict=True):
            if isinstance(dim, str):
                symbols.setdefault(dim, value)
    return symbols


def _default_shape(item: Declared, symbols: Mapping[str, int]) -> tuple[tuple[int, ...], str]:
    if item.shape is None:
        return (1,), "unknown rank"
    shape = tuple(dim if isinstance(dim, int) else symbols.get(dim or "", 1) for dim in item.shape)
    open_dims = [dim for dim in item.shape if not isinstance(dim, int) and (dim or "") not in symbols]
    return shape, ", ".join(dim or "unknown dimension" for dim in dict.fromkeys(open_dims))
