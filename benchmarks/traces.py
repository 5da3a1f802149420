"""Prompt lengths of public LLM traces, for caches and shapes that come back.

Read from the folder in $LLM_TRACES: `azure_code_2023.csv` (Azure Public Dataset, CC-BY 4.0; Splitwise, ISCA'24) and
`mooncake_synthetic.jsonl` (Mooncake, Apache-2.0; FAST'25).
"""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

FOLDER = Path(os.environ.get("LLM_TRACES", Path(__file__).parents[2] / "shared" / "data" / "llm_traces"))


def prompt_lengths() -> dict[str, list[int]]:
    """Tokens of each prompt in order of arrival, by trace; empty where there is no such folder."""
    traces: dict[str, list[int]] = {}
    code, chat = FOLDER / "azure_code_2023.csv", FOLDER / "mooncake_synthetic.jsonl"
    if code.is_file():
        with code.open(encoding="utf-8", newline="") as f:
            traces["azure code"] = [int(row["ContextTokens"]) for row in csv.DictReader(f)]
    if chat.is_file():
        lines = chat.read_text(encoding="utf-8").splitlines()
        traces["mooncake chat"] = [int(json.loads(line)["input_length"]) for line in lines]
    return traces


def ceil_to(lengths: list[int], step: int) -> list[int]:
    """The lengths rounded up to multiples of `step`."""
    return [-(-n // step) * step for n in lengths]
