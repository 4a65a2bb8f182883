#!/usr/bin/env python3
"""Writes a model folder like Hugging Face's GPT-2 and Llama, with random weights, for timing. Needs only numpy.

    random_gpt2.py FOLDER                                       GPT-2 of 124 million parameters, F32
    random_gpt2.py FOLDER --model llama --kv-heads 4            a Llama of about the same size
    random_gpt2.py FOLDER --dtype BF16 --tokenizer OTHER        copies the tokenizer's files from a folder
"""

import argparse
import json
import math
import pathlib
import shutil
import struct

import numpy

SIZES = {"F32": 4, "F16": 2, "BF16": 2}
TORCH_DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
TOKENIZER_FILES = "vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json"


def gpt2_config(options):
    return {
        "activation_function": "gelu_new",
        "architectures": ["GPT2LMHeadModel"],
        "attn_pdrop": 0.1,
        "embd_pdrop": 0.1,
        "layer_norm_epsilon": 1e-05,
        "model_type": "gpt2",
        "n_ctx": options.positions,
        "n_embd": options.width,
        "n_head": options.heads,
        "n_inner": options.inner,
        "n_layer": options.layers,
        "n_positions": options.positions,
        "resid_pdrop": 0.1,
        "tie_word_embeddings": True,
    }


def gpt2_shapes(options):
    width, inner = options.width, options.inner or 4 * options.width
    yield "wte.weight", (options.vocabulary, width)
    yield "wpe.weight", (options.positions, width)
    for i in range(options.layers):
        block = {"ln_1": (width,), "attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width), "ln_2": (width,),
                 "mlp.c_fc": (width, inner), "mlp.c_proj": (inner, width)}
        for name, shape in block.items():
            yield f"h.{i}.{name}.weight", shape
            yield f"h.{i}.{name}.bias", shape[-1:]
    yield "ln_f.weight", (width,)
    yield "ln_f.bias", (width,)


def llama_config(options):
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "hidden_act": "silu",
        "hidden_size": options.width,
        "intermediate_size": llama_inner(options),
        "max_position_embeddings": options.positions,
        "model_type": "llama",
        "num_attention_heads": options.heads,
        "num_hidden_layers": options.layers,
        "num_key_value_heads": options.kv_heads or options.heads,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
    }


def llama_inner(options):
    """8/3 of the width, rounded up to a multiple of 256, as in Llama with 7 billion and more parameters."""
    return options.inner or math.ceil(8 * options.width / 3 / 256) * 256


def llama_shapes(options):
    width, inner = options.width, llama_inner(options)
    key_width = width // options.heads * (options.kv_heads or options.heads)
    yield "model.embed_tokens.weight", (options.vocabulary, width)
    for i in range(options.layers):
        layer = {"input_layernorm": (width,), "self_attn.q_proj": (width, width),
                 "self_attn.k_proj": (key_width, width), "self_attn.v_proj": (key_width, width),
                 "self_attn.o_proj": (width, width), "post_attention_layernorm": (width,),
                 "mlp.gate_proj": (inner, width), "mlp.up_proj": (inner, width), "mlp.down_proj": (width, inner)}
        for name, shape in layer.items():
            yield f"model.layers.{i}.{name}.weight", shape
    yield "model.norm.weight", (width,)


def stored(x, dtype):
    """Encodes floats in a file's type, rounded to nearest."""
    if dtype == "BF16":  # the upper halves; ties go to even
        bits = x.view(numpy.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()
    return x.astype("<f2" if dtype == "F16" else "<f4").tobytes()


def write_tensors(path, shapes, dtype, seed):
    """Matrices are normal with standard deviation 0.02, norms 1, biases 0."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        begin, end = end, end + SIZES[dtype] * math.prod(shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    random = numpy.random.default_rng(seed)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            if len(shape) == 2:
                x = numpy.float32(0.02) * random.standard_normal(shape, numpy.float32)
            else:
                x = numpy.full(shape, name.endswith("weight"), numpy.float32)
            file.write(stored(x, dtype))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--model", choices=["gpt2", "llama"], default="gpt2")
    parser.add_argument("--dtype", choices=SIZES, default="F32")
    parser.add_argument("--tokenizer", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--positions", type=int, default=1024)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--kv-heads", type=int, help="heads of keys and values of a llama; default: --heads")
    parser.add_argument("--inner", type=int, help="width of the feed-forward layers")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.kv_heads and options.model == "gpt2":
        parser.error("--kv-heads: expected with --model llama")
    if options.width % options.heads or options.heads % (options.kv_heads or options.heads):
        parser.error("expected a width of whole heads, and a number of heads for each key head")
    return options


def main():
    options = parse()
    config, shapes = {"gpt2": (gpt2_config, gpt2_shapes), "llama": (llama_config, llama_shapes)}[options.model]
    shapes = dict(shapes(options))
    options.folder.mkdir(parents=True, exist_ok=True)
    last = options.vocabulary - 1
    common = {"bos_token_id": last, "eos_token_id": last, "initializer_range": 0.02, "use_cache": True,
              "torch_dtype": TORCH_DTYPES[options.dtype], "vocab_size": options.vocabulary}
    text = json.dumps(config(options) | common, indent=2, sort_keys=True)
    (options.folder / "config.json").write_text(text + "\n")
    write_tensors(options.folder / "model.safetensors", shapes, options.dtype, options.seed)
    if options.tokenizer:
        found = [options.tokenizer / name for name in TOKENIZER_FILES if (options.tokenizer / name).exists()]
        if not found:
            raise SystemExit(f"{options.tokenizer}: expected a folder with a tokenizer's files")
        for path in found:
            shutil.copy(path, options.folder)
    print(f"{options.folder}: {sum(map(math.prod, shapes.values())):,} parameters in {options.dtype}")


if __name__ == "__main__":
    main()
