"""Reads and writes safetensors files in PyTorch, as Debian has no python3-safetensors."""

import json
import pathlib
import struct

import torch

DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}


def load(path):
    """The arrays of a file, by name."""
    data = pathlib.Path(path).read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)

    def array(entry):
        first, last = entry["data_offsets"]
        dtype = DTYPES[entry["dtype"]]
        if first == last:
            return torch.empty(entry["shape"], dtype=dtype)
        return torch.frombuffer(bytearray(data[start + first:start + last]), dtype=dtype).reshape(entry["shape"])

    return {name: array(entry) for name, entry in header.items()}


def save(state, path):
    header, data = {}, b""
    for name, array in state.items():
        raw = array.numpy().tobytes()
        dtype = next(name for name, dtype in DTYPES.items() if dtype == array.dtype)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)
