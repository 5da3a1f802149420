"""How fast are torch models through ``torch.compile`` with our back end, and what does a call of ours cost?

Decoders of Hugging Face with random weights generate token by token, one request, with a cache that grows and with one
of fixed capacity; beside eager torch, ``aot_eager`` and ``inductor``, turn by turn on one thread. The time of dynamo's
guards and of Hugging Face's own Python is in every row. The last table compares one tiny model with a back end that
returns constants: what is more than that is ours, kernels included.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from command import main
from harness import Array, Effort, Subject, Table, compare

VOCABULARY, CAPACITY, STEPS, WARM = 128, 256, 8, 8


class Decoding:
    """One request of a model: a sample is some tokens after a prompt."""

    def __init__(self, torch: Any, transformers: Any, model: Any, run: Any, is_static: bool) -> None:
        self._torch, self._transformers = torch, transformers
        self._model, self._run, self._is_static = model, run, is_static
        self._cache: Any = None
        self._position = 0
        self._ids = torch.arange(VOCABULARY)[None]

    def _feed(self, count: int) -> Any:
        torch, position = self._torch, self._position
        extra = {"cache_position": torch.arange(position, position + count)} if self._is_static else {}
        ids = self._ids[:, position % 64 : position % 64 + count]
        self._position += count
        with torch.no_grad():
            return self._run(ids, past_key_values=self._cache, use_cache=True, **extra).logits[:, -1]

    def start(self) -> None:
        """Begins again: a prompt, and the tokens until shapes vary as they will."""
        config = self._model.config
        if self._is_static:
            self._cache = self._transformers.StaticCache(config=config, max_cache_len=CAPACITY)
        else:
            self._cache = self._transformers.DynamicCache(config=config)
        self._position = 0
        self._feed(5)
        for _ in range(WARM):
            self._feed(1)

    def advance(self) -> None:
        """The tokens of a sample."""
        for _ in range(STEPS):
            self._feed(1)

    def result(self) -> Array:
        """The logits of one sample."""
        self.start()
        logits: Array = self._torch.cat([self._feed(1) for _ in range(STEPS)]).numpy()
        return logits

    @contextmanager
    def started(self) -> Iterator[None]:
        """Around a sample."""
        self.start()
        yield


def _models(transformers: Any, is_quick: bool) -> dict[str, Callable[[], Any]]:
    width, layers = (64, 2) if is_quick else (128, 4)

    def llama() -> Any:
        sizes = {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": layers}
        heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
        config = transformers.LlamaConfig(vocab_size=VOCABULARY, **sizes, **heads)
        return transformers.LlamaForCausalLM(config).eval()

    def gpt2() -> Any:
        ends = {"bos_token_id": 0, "eos_token_id": 0}
        config = transformers.GPT2Config(vocab_size=VOCABULARY, n_embd=width, n_layer=layers, n_head=4, **ends)
        return transformers.GPT2LMHeadModel(config).eval()

    return {"Llama": llama, "GPT-2": gpt2}


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


def _measure_calls(torch: Any, effort: Effort) -> Table:
    from torch._dynamo.backends.common import aot_autograd

    from ascendsched.torch import backend

    layers = [torch.nn.Linear(8, 8), torch.nn.ReLU()] * 2
    model = torch.nn.Sequential(*layers)
    x = torch.ones(1, 8)
    subjects = []
    for label, chosen in (("ascendsched", backend), ("constants", aot_autograd(fw_compiler=_constant))):
        run = torch.compile(model, backend=chosen)

        def call(run: Any = run) -> Any:
            with torch.no_grad():
                return run(x)

        want = lambda: model(x).detach().numpy()  # noqa: E731
        checked = want if label == "constants" else (lambda call=call: call().numpy())
        subjects.append(Subject(label, call, result=checked))
    subjects[1].call()
    return compare("one call of a tiny model", "call", subjects, model(x).detach().numpy(), effort)


def measure(effort: Effort) -> Iterator[Table]:
    """One table per decoder and kind of cache, and one for the call itself; none without torch and transformers."""
    if not (find_spec("torch") and find_spec("transformers")):
        print("torch or transformers is not installed: nothing to measure")
        return
    import torch
    import transformers

    from ascendsched.torch import backend

    logging.getLogger("transformers").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    backends: dict[str, Any] = {"ascendsched": backend, "aot_eager": "aot_eager", "inductor": "inductor"}
    for name, make in _models(transformers, effort.is_quick).items():
        for is_static in (False, True):
            torch._dynamo.reset()
            model = make()
            subjects = []
            for label in ("eager", *backends):
                own = make()
                own.load_state_dict(model.state_dict())
                options = {"options": {"threads": 1}} if label == "ascendsched" else {}
                run = own if label == "eager" else torch.compile(own, backend=backends[label], **options)
                decoding = Decoding(torch, transformers, own, run, is_static)
                subjects.append(Subject(label, decoding.advance, STEPS, decoding.result, around=decoding.started))
            reference = Decoding(torch, transformers, model, model, is_static).result()
            kind = "fixed cache" if is_static else "growing cache"
            yield compare(f"{name}, {kind}", "token", subjects, reference, effort, calls=1, rate="tokens/s")
    yield _measure_calls(torch, effort)


if __name__ == "__main__":
    sys.exit(main(__doc__, {"torch": measure}))
