"""Tensors of ONNX files as NumPy arrays, external data included."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ascendsched.errors import GraphError, UnsupportedError
from ascendsched.frontends.node import Tensor, text
from ascendsched.frontends.onnx_wire import Weights
from ascendsched.packed import STRING

if TYPE_CHECKING:
    import onnx

# TensorProto.DataType: our name, element type as stored, field that holds the values when raw_data does not.
_STORAGE: dict[int, tuple[str, str, str]] = {
    1: ("float32", "<f4", "float_data"),
    2: ("uint8", "|u1", "int32_data"),
    3: ("int8", "|i1", "int32_data"),
    4: ("uint16", "<u2", "int32_data"),
    5: ("int16", "<i2", "int32_data"),
    6: ("int32", "<i4", "int32_data"),
    7: ("int64", "<i8", "int64_data"),
    9: ("bool", "|u1", "int32_data"),
    10: ("float16", "<f2", "int32_data"),
    11: ("float64", "<f8", "double_data"),
    12: ("uint32", "<u4", "uint64_data"),
    13: ("uint64", "<u8", "uint64_data"),
    16: ("bfloat16", "<u2", "int32_data"),
}
_DTYPES = {code: np.dtype(stored) for code, (_, stored, _) in _STORAGE.items()}
TEXT = 8  # TensorProto.STRING
_EXTERNAL = 1  # TensorProto.DataLocation


def dtype_name(elem_type: int, where: str) -> str:
    """Return our name of a ``TensorProto.DataType``, "string" among them, which the core does not have.

    Raises
    ------
    UnsupportedError
        For complex numbers and types of 8 bits or fewer that are no integers.
    GraphError
        For a number that is no element type.
    """
    entry = _STORAGE.get(elem_type)
    if entry is not None:
        return entry[0]
    if elem_type == TEXT:
        return STRING
    import onnx

    if elem_type in onnx.TensorProto.DataType.values() and elem_type != onnx.TensorProto.UNDEFINED:
        name = onnx.TensorProto.DataType.Name(elem_type).lower()
        raise UnsupportedError(f"[onnx] {where}: element type {name} is not supported; convert the model")
    raise GraphError(f"[onnx] {where}: {elem_type} is no element type; the file is damaged or incomplete")


def _texts(proto: onnx.TensorProto, where: str) -> np.ndarray[Any, np.dtype[Any]]:
    dims = tuple(proto.dims)
    if math.prod(dims) != len(proto.string_data) or any(dim < 0 for dim in dims):
        raise GraphError(
            f"[onnx] {where}: {len(proto.string_data)} strings for dimensions {list(dims)}; the file is damaged"
        )
    array = np.empty(len(proto.string_data), object)
    try:
        array[:] = [raw.decode("utf-8") for raw in proto.string_data]
        return array.reshape(dims)
    except ValueError as error:
        raise GraphError(f"[onnx] {where}: strings of dimensions {list(dims)}: {error}; the file is damaged") from None


class TensorReader:
    """Reads ``TensorProto`` values.

    Parameters
    ----------
    folder
        Folder of the model file, the only place where external data may lie; None for a model without a file.
    files
        Takes the files that are read, as they were then.
    weights
        What was cut out of the model before it was parsed.
    """

    def __init__(
        self,
        folder: Path | None,
        files: dict[Path, os.stat_result] | None = None,
        weights: Weights | None = None,
    ) -> None:
        self._folder = folder
        self._weights = Weights() if weights is None else weights
        self._files = {} if files is None else files
        self._paths: dict[str, Path] = {}

    def read(self, proto: onnx.TensorProto, where: str) -> Tensor:
        """Return the values of a tensor; ``where`` names it in errors.

        Raises
        ------
        GraphError
            Where the values do not fit the dimensions, or external data is missing or outside the model's folder.
        UnsupportedError
            For an element type that the core does not have.
        """
        name = dtype_name(proto.data_type, where)
        if name == STRING:
            return Tensor(_texts(proto, where), name)
        storage = _DTYPES[proto.data_type]
        dims = tuple(proto.dims)
        count = 1
        for dim in dims:
            count *= dim
        if dims and min(dims) < 0:
            raise GraphError(f"[onnx] {where}: negative dimension in {list(dims)}; the file is damaged")
        if proto.HasField("segment"):
            raise GraphError(f"[onnx] {where}: segmented tensors are not part of ONNX files; save the model again")
        array = self._stored(proto, storage, count, where)
        if array.size != count:
            raise GraphError(
                f"[onnx] {where}: {array.size} values of {name} for dimensions {list(dims)}, which need {count}; "
                "the file is damaged or truncated"
            )
        if name == "bool":
            array = array != 0
        try:
            return Tensor(array.reshape(dims), name)
        except ValueError as error:
            raise GraphError(f"[onnx] {where}: dimensions {list(dims)}: {error}") from None

    def _stored(
        self, proto: onnx.TensorProto, storage: np.dtype[Any], count: int, where: str
    ) -> np.ndarray[Any, np.dtype[Any]]:
        if proto.data_location == _EXTERNAL:
            return self._external(proto, count * storage.itemsize, where).view(storage)
        if proto.HasField("raw_data"):
            raw = self._weights.find(proto.raw_data)
            if len(raw) % storage.itemsize:
                raise GraphError(f"[onnx] {where}: {len(raw)} bytes are no whole number of values; the file is damaged")
            return np.frombuffer(raw, storage)
        values = getattr(proto, _STORAGE[proto.data_type][2])
        if storage.kind == "f" and storage.itemsize == 2:  # float16 lies as bits in int32_data
            return np.array(values, np.int32).astype("<u2").view(storage)
        if _STORAGE[proto.data_type][2] == "int32_data":
            return np.array(values, np.int32).astype(storage)
        return np.array(values, storage)

    def _external(self, proto: onnx.TensorProto, nbytes: int, where: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
        entries = {text(entry.key): text(entry.value) for entry in proto.external_data}
        try:
            offset = int(entries.get("offset", 0))
            length = int(entries.get("length", nbytes))
        except ValueError:
            raise GraphError(f"[onnx] {where}: external offset and length must be numbers, got {entries}") from None
        if length != nbytes or offset < 0:
            raise GraphError(
                f"[onnx] {where}: external data at offset {offset} has {length} bytes, its dimensions need {nbytes}; "
                "the file is damaged"
            )
        location = entries.get("location", "")
        path = self._path(location, where)
        try:
            size = self._files.setdefault(path, path.stat()).st_size
            if not path.is_file():
                raise GraphError(f"[onnx] {where}: external data '{location}' is not a file")
            # The size comes first: a damaged length must not make us allocate that much.
            data = np.fromfile(path, np.uint8, length, offset=offset) if offset + length <= size else None
        except OSError as error:
            raise GraphError(
                f"[onnx] {where}: cannot read external data '{location}' beside the model: {error.strerror or error}; "
                "copy the model's data files to its folder"
            ) from None
        if data is None or data.size != length:
            raise GraphError(
                f"[onnx] {where}: external data ends at byte {offset + length}, but '{location}' has {size} bytes; "
                "the data file is truncated or another model's"
            )
        return data

    def _path(self, location: str, where: str) -> Path:
        path = self._paths.get(location)
        if path is None:
            path = self._paths[location] = self._inside_folder(location, where)
        return path

    def _inside_folder(self, location: str, where: str) -> Path:
        if self._folder is None:
            raise GraphError(
                f"[onnx] {where}: values lie in the external file '{location}', but the model has no folder; "
                "pass the path of the model file"
            )
        parts = location.replace("\\", "/").split("/")
        if not location or "\0" in location or Path(location).is_absolute() or ".." in parts:
            raise GraphError(
                f"[onnx] {where}: external data location {location!r} is not a path inside the model's folder; "
                "save the model with its data beside it"
            )
        folder = self._folder.resolve()
        path = (folder / location).resolve()
        if not path.is_relative_to(folder):
            raise GraphError(
                f"[onnx] {where}: external data '{location}' leaves the model's folder through a link; "
                "copy the data file to the model's folder"
            )
        return path
