"""A model of two megabytes for llama.cpp, with weights drawn by chance: what it says is noise, what its server counts of
it is as real as of any. Owns the GGUF file and nothing of how it is served."""
import random
import struct

U32, F32, STRING, ARRAY, I32 = 4, 6, 8, 9, 5
NUMBERS = {U32: "<I", F32: "<f", I32: "<i"}
WIDTH, LAYERS, HEADS, INNER, CONTEXT = 128, 3, 4, 256, 65536
ALIGNMENT = 32
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def text_of(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value_of(kind, value):
    return text_of(value) if kind == STRING else struct.pack(NUMBERS[kind], value)


def key(name, kind, value):
    """One entry of the head; kind of a list: that of its members, in a tuple."""
    if not isinstance(kind, tuple):
        return text_of(name) + struct.pack("<I", kind) + value_of(kind, value)
    members = b"".join(value_of(kind[0], one) for one in value)
    return text_of(name) + struct.pack("<IIQ", ARRAY, kind[0], len(value)) + members


def vocabulary():
    """(texts, scores, kinds): the special tokens, each byte, a space and the letters."""
    texts = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), "\u2581", *"abcdefghijklmnopqrstuvwxyz"]
    kinds = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * 27
    return texts, [float(-i) for i in range(len(texts))], kinds


def keys():
    texts, scores, kinds = vocabulary()
    return [key("general.architecture", STRING, "llama"), key("general.name", STRING, "tiny"),
            key("general.alignment", U32, ALIGNMENT), key("llama.context_length", U32, CONTEXT),
            key("llama.embedding_length", U32, WIDTH), key("llama.block_count", U32, LAYERS),
            key("llama.feed_forward_length", U32, INNER), key("llama.attention.head_count", U32, HEADS),
            key("llama.attention.head_count_kv", U32, HEADS), key("llama.rope.dimension_count", U32, WIDTH // HEADS),
            key("llama.attention.layer_norm_rms_epsilon", F32, 1e-5), key("llama.vocab_size", U32, len(texts)),
            key("tokenizer.ggml.model", STRING, "llama"), key("tokenizer.ggml.tokens", (STRING,), texts),
            key("tokenizer.ggml.scores", (F32,), scores), key("tokenizer.ggml.token_type", (I32,), kinds),
            key("tokenizer.ggml.bos_token_id", U32, 1), key("tokenizer.ggml.eos_token_id", U32, 2),
            key("tokenizer.ggml.unknown_token_id", U32, 0)]


def shapes():
    words = len(vocabulary()[0])
    yield "token_embd.weight", (WIDTH, words)
    yield "output_norm.weight", (WIDTH,)
    yield "output.weight", (WIDTH, words)
    for i in range(LAYERS):
        for part in ("attn_norm", "ffn_norm"):
            yield f"blk.{i}.{part}.weight", (WIDTH,)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"blk.{i}.{part}.weight", (WIDTH, WIDTH)
        yield f"blk.{i}.ffn_gate.weight", (WIDTH, INNER)
        yield f"blk.{i}.ffn_up.weight", (WIDTH, INNER)
        yield f"blk.{i}.ffn_down.weight", (INNER, WIDTH)


def padded(data):
    return data + b"\0" * (-len(data) % ALIGNMENT)


def write(path):
    chance = random.Random(7)
    infos, data, count = b"", b"", 0
    for name, shape in shapes():
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        infos += text_of(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        data += padded(struct.pack(f"<{n}f", *(chance.gauss(0, 0.1) if len(shape) > 1 else 1.0 for _ in range(n))))
        count += 1
    head = b"GGUF" + struct.pack("<IQQ", 3, count, len(keys())) + b"".join(keys()) + infos
    path.write_bytes(padded(head) + data)
