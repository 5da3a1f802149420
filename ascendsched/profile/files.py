"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from ascendsched.errors import WriteError


def write_whole(path: str | os.PathLike[str], text: str) -> str:
    """Writes a file, or replaces it, and returns its path.

    Raises
    ------
    WriteError
        Where it cannot be written; what was there stays.
    """
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if not target.parent.is_dir():
            raise WriteError(f"[profile] no folder '{target.parent}' for '{target.name}'; create it first")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(target)
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(f"[profile] cannot write '{target}': {error.strerror}; choose another path") from None
    finally:
        scratch.unlink(missing_ok=True)
    return str(target)
