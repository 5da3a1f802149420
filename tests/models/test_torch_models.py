"""Decoders and encoders of Hugging Face, of random weights, give through our back end what they give in torch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", reason="the models are its own")

from ascendsched import torch as back_end  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_torch")]

VOCABULARY, CAPACITY, STEPS = 128, 80, 64


def _llama() -> Any:
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = transformers.LlamaConfig(vocab_size=VOCABULARY, **sizes, **heads)
    return transformers.LlamaForCausalLM(config).eval()


def _gpt2() -> Any:
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    config = transformers.GPT2Config(vocab_size=VOCABULARY, n_embd=64, n_layer=2, n_head=4, **ends)
    return transformers.GPT2LMHeadModel(config).eval()


def _mixtral() -> Any:
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_local_experts": 4}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return transformers.MixtralForCausalLM(transformers.MixtralConfig(vocab_size=VOCABULARY, **sizes, **heads)).eval()


def _decode(model: Any, run: Any, is_static: bool, steps: int = STEPS) -> tuple[Any, int]:
    """The logits of all steps, and how many graphs torch compiled for them."""
    made = transformers.StaticCache if is_static else transformers.DynamicCache
    cache = made(config=model.config, **({"max_cache_len": CAPACITY} if is_static else {}))
    generator = torch.Generator().manual_seed(1)
    logits, position = [], 0
    for step in range(steps):
        ids = torch.randint(0, VOCABULARY, (1, 1 if step else 5), generator=generator)
        extra = {"cache_position": torch.arange(position, position + ids.shape[1])} if is_static else {}
        logits.append(run(ids, past_key_values=cache, use_cache=True, **extra).logits[:, -1])
        position += ids.shape[1]
    return torch.cat(logits), torch._dynamo.utils.counters["stats"]["unique_graphs"]


@pytest.mark.parametrize("is_static", [False, True], ids=["growing cache", "static cache"])
@pytest.mark.parametrize("make", [_llama, _gpt2], ids=["llama", "gpt2"])
def test_decoder_gives_the_logits_of_torch_over_many_steps(make: Any, is_static: bool) -> None:
    model = make()
    want, _ = _decode(model, model, is_static)
    got, graphs = _decode(model, torch.compile(model, backend=back_end.backend), is_static)
    assert float((got - want).abs().max() / want.abs().max()) < 1e-4
    stats = back_end.stats()
    assert stats["fallbacks"] == {}
    # Keys and values of each layer, in each graph but for what it counts: written where the cache lies.
    assert (stats["updates_in_place"] >= 4) == is_static
    assert not torch._dynamo.utils.counters["graph_break"]
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    _, graphs_of_peer = _decode(model, torch.compile(model, backend="eager"), is_static)
    assert graphs <= graphs_of_peer


def test_experts_run_whole_over_a_static_cache() -> None:
    model = _mixtral()
    want, _ = _decode(model, model, True, steps=6)
    run = torch.compile(model, backend=back_end.backend, fullgraph=True, dynamic=False)
    got, _ = _decode(model, run, True, steps=6)
    assert float((got - want).abs().max() / want.abs().max()) < 1e-4
    stats = back_end.stats()
    assert stats["fallbacks"] == {}
    assert stats["updates_in_place"] >= 2


def test_encoder_gives_the_states_of_torch_for_masked_batches() -> None:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    model = transformers.BertModel(transformers.BertConfig(vocab_size=VOCABULARY, **sizes)).eval()
    run = torch.compile(model, backend=back_end.backend, fullgraph=True)
    for batch, length in ((2, 9), (3, 12), (1, 30)):
        ids = torch.randint(0, VOCABULARY, (batch, length))
        mask = torch.ones(batch, length, dtype=torch.long)
        mask[-1, length // 2 :] = 0
        got, want = run(ids, attention_mask=mask)[0], model(ids, attention_mask=mask)[0]
        assert float((got - want).abs().max() / want.abs().max()) < 1e-4
    assert back_end.stats()["fallbacks"] == {}


def test_encoder_with_relative_positions_gives_the_states_of_torch() -> None:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    model = transformers.T5EncoderModel(transformers.T5Config(vocab_size=VOCABULARY, **sizes)).eval()
    run = torch.compile(model, backend=back_end.backend, fullgraph=True)
    ids = torch.randint(0, VOCABULARY, (2, 9))
    got, want = run(ids)[0], model(ids)[0]
    assert float((got - want).abs().max() / want.abs().max()) < 1e-4
    assert back_end.stats()["fallbacks"] == {}
