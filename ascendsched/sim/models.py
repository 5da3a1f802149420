"""The models that `simulate` knows: graphs with inputs in place of weights, compiled like any other.

Half precision is written as float32, because the core computes it so; `Model.float_bytes` says what a device keeps.
Dimensions: Touvron et al., arXiv:2302.13971 (LLaMA); He et al., arXiv:1512.03385 (ResNet); Devlin et al.,
arXiv:1810.04805 (BERT). The 38B model has LLaMA's form with the dimensions of PanGu-alpha's class (40 layers of 8,192).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ascendsched.errors import AscendSchedError
from ascendsched.graph import Graph
from ascendsched.sim import decoder, vision
from ascendsched.sim.decoder import DecoderSize


@dataclass(frozen=True)
class Model:
    """A model to simulate.

    Attributes
    ----------
    name : str
        As the command line has it.
    graph : Graph
        Its graph.
    shapes : dict
        Shape of every input.
    float_bytes : int
        What a float32 of the graph takes on the device.
    items : int
        What one run produces: tokens or pictures.
    unit : str
        The word for one of them.
    context : int, optional
        Tokens in the cache or of a sequence, for models that have them.
    """

    name: str
    graph: Graph
    shapes: dict[str, tuple[int, ...]]
    float_bytes: int
    items: int
    unit: str
    context: int | None = None


MAX_BERT_TOKENS = 512  # of which BERT has positions

LLAMA_7B = DecoderSize(layers=32, width=4096, heads=32, feed_forward=11008, vocabulary=32000)
LLAMA_13B = DecoderSize(layers=40, width=5120, heads=40, feed_forward=13824, vocabulary=32000)
DECODER_38B = DecoderSize(layers=40, width=8192, heads=64, feed_forward=24576, vocabulary=32000, is_int8=True)


def _decode(size: DecoderSize) -> Callable[[str, int, int, int], Model]:
    def build(name: str, batch: int, context: int, shards: int) -> Model:
        graph, shapes = decoder.build(size, batch, 1, context, shards)
        return Model(name, graph, shapes, 2, batch, "tokens", context)

    return build


def _prefill(size: DecoderSize) -> Callable[[str, int, int, int], Model]:
    def build(name: str, batch: int, context: int, shards: int) -> Model:
        graph, shapes = decoder.build(size, batch, context, 0, shards)
        return Model(name, graph, shapes, 2, batch * context, "tokens", context)

    return build


def _resnet50(name: str, batch: int, context: int, shards: int) -> Model:
    graph, shapes = vision.build_resnet50(batch)
    return Model(name, graph, shapes, 2, batch, "pictures")


def _bert_large(name: str, batch: int, context: int, shards: int) -> Model:
    tokens = min(context, MAX_BERT_TOKENS)
    graph, shapes = vision.build_bert_large(batch, tokens)
    return Model(name, graph, shapes, 2, batch, "sequences", tokens)


BUILDERS: dict[str, Callable[[str, int, int, int], Model]] = {
    "llama-7b": _decode(LLAMA_7B),
    "llama-7b-prefill": _prefill(LLAMA_7B),
    "llama-13b": _decode(LLAMA_13B),
    "llama-13b-prefill": _prefill(LLAMA_13B),
    "decoder-38b-int8": _decode(DECODER_38B),
    "resnet-50": _resnet50,
    "bert-large": _bert_large,
}


def build_model(name: str, batch: int = 1, context: int = 1024, shards: int = 1) -> Model:
    """Builds a model.

    Parameters
    ----------
    name : str
        One of `BUILDERS`.
    batch, context : int
        Sequences or pictures at once; tokens in the cache, or of the prompt.
    shards : int
        Ranks over which each layer is split (tensor parallel); decoders only.

    Raises
    ------
    AscendSchedError
        For a name that is not known, or sizes that do not fit the model.
    """
    if name not in BUILDERS:
        known = f"known are {', '.join(BUILDERS)}"
        if Path(name).is_file():
            known = f"run a file on the device instead: ascendsched profile {name} --device sim:ascend-910b; {known}"
        raise AscendSchedError(f"[simulate] no model '{name}'; {known}")
    if not 1 <= batch <= 4096 or not 1 <= context <= 131072:
        raise AscendSchedError(f"[simulate] batch {batch}, context {context}; give 1 to 4096 and 1 to 131072")
    return BUILDERS[name](name, batch, context, shards)
