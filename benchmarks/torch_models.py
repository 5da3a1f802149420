"""Models of the torch benchmark, with random weights: decoders of Hugging Face, an encoder, a ResNet-18."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness import Array

VOCABULARY = 128
STEPS = 4  # tokens of a sample
LAYERS = 4


class Decoding:
    """Requests of a model, as many as the batch, that are answered token by token after a prompt of some length."""

    def __init__(self, torch: Any, transformers: Any, model: Any, run: Any, case: tuple[bool, int, int]) -> None:
        self._torch, self._transformers, self._model, self._run = torch, transformers, model, run
        self._is_static, self._batch, self._prompt = case
        self._capacity = self._prompt + 64
        self._ids = torch.arange(self._batch * 512).reshape(self._batch, -1) % VOCABULARY
        self._cache: Any = None
        self._position = self._capacity

    def _feed(self, count: int) -> Any:
        torch, position = self._torch, self._position
        extra = {"cache_position": torch.arange(position, position + count)} if self._is_static else {}
        ids = self._ids[:, position : position + count]
        self._position += count
        with torch.no_grad():
            return self._run(ids, past_key_values=self._cache, use_cache=True, **extra).logits[:, -1]

    def start(self) -> None:
        """Begins again: a prompt, and the tokens until shapes vary as they will."""
        config = self._model.config
        if self._is_static:
            self._cache = self._transformers.StaticCache(config=config, max_cache_len=self._capacity)
        else:
            self._cache = self._transformers.DynamicCache(config=config)
        self._position = 0
        self._feed(self._prompt)
        for _ in range(3):
            self._feed(1)

    def advance(self) -> None:
        """The tokens of a sample."""
        for _ in range(STEPS):
            self._feed(1)

    def result(self) -> Array:
        """The logits of many steps from the start."""
        self.start()
        logits: Array = self._torch.cat([self._feed(1) for _ in range(16)]).numpy()
        return logits

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Around a sample: starts again where the cache would not do."""
        if self._position + STEPS > self._capacity:
            self.start()
        yield


def _heads(width: int) -> int:
    return max(4, width // 64)


def llama(transformers: Any, width: int, layers: int = LAYERS) -> Any:
    """A Llama whose heads share keys in pairs."""
    sizes = {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": layers}
    heads = {"num_attention_heads": _heads(width), "num_key_value_heads": _heads(width) // 2}
    config = transformers.LlamaConfig(vocab_size=VOCABULARY, **sizes, **heads)
    return transformers.LlamaForCausalLM(config).eval()


def gpt2(transformers: Any, width: int, layers: int = LAYERS) -> Any:
    """A GPT-2."""
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    sizes = {"n_embd": width, "n_layer": layers, "n_head": _heads(width)}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=VOCABULARY, **sizes, **ends)).eval()


def bert(transformers: Any, width: int, layers: int = LAYERS) -> Any:
    """A BERT."""
    sizes = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": layers}
    config = transformers.BertConfig(vocab_size=VOCABULARY, num_attention_heads=_heads(width), **sizes)
    return transformers.BertModel(config).eval()


def resnet18(torch: Any) -> Any:
    """A ResNet-18 for 1,000 classes."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inner: int, outer: int, stride: int) -> None:
            super().__init__()
            first = [nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True)]
            second = [nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer)]
            self.main = nn.Sequential(*first, *second)
            short = [nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)]
            self.short = nn.Sequential(*(short if stride != 1 or inner != outer else []))
            self.act = nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            return self.act(self.main(x) + self.short(x))

    layers: list[Any] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, 1))
    inner = 64
    for outer, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inner, outer, stride), Block(outer, outer, 1)]
        inner = outer
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).eval()
