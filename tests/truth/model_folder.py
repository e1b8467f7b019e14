"""Make the tiny model of the real-client tests as a folder that vLLM serves, too: same weights, same words.

usage: model_folder.py FOLDER
"""

import json
import pathlib
import sys

import numpy
import safetensors.numpy

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "real"))
import tiny_model as tiny

PLAIN = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def unpermuted(tensor: numpy.ndarray, heads: int) -> numpy.ndarray:
    """Hugging Face keeps the halves of a rotated head apart, llama.cpp interleaves them."""
    rows = tensor.shape[0] // heads // 2
    return tensor.reshape(heads, rows, 2, -1).swapaxes(1, 2).reshape(tensor.shape)


def hugging_face(name: str, tensor: numpy.ndarray) -> tuple[str, numpy.ndarray]:
    if name in PLAIN:
        return PLAIN[name], tensor
    _, layer, part, _ = name.split(".")
    if part == "attn_q":
        tensor = unpermuted(tensor, tiny.HEADS)
    if part == "attn_k":
        tensor = unpermuted(tensor, tiny.KEY_VALUE_HEADS)
    return f"model.layers.{layer}.{LAYER[part]}.weight", numpy.ascontiguousarray(tensor)


def main(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tiny.train_tokenizer()
    tiny.write(str(folder / "tiny.gguf"), tokenizer)
    tokenizer.save(str(folder / "tokenizer.json"))
    tensors = tiny.weights(tokenizer.get_vocab_size())
    safetensors.numpy.save_file(
        dict(hugging_face(name, tensor) for name, tensor in tensors.items()),
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "model_max_length": tiny.CONTEXT,
            "chat_template": tiny.CHAT_TEMPLATE,
            "clean_up_tokenization_spaces": False,
        },
    )
    ends = {"bos_token_id": None, "eos_token_id": tiny.TURN_END, "pad_token_id": tiny.END_OF_TEXT}
    write_json(folder / "generation_config.json", ends)
    write_json(
        folder / "config.json",
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": tiny.HIDDEN,
            "intermediate_size": tiny.FEED_FORWARD,
            "num_hidden_layers": tiny.LAYERS,
            "num_attention_heads": tiny.HEADS,
            "num_key_value_heads": tiny.KEY_VALUE_HEADS,
            "head_dim": tiny.HEAD,
            "vocab_size": tokenizer.get_vocab_size(),
            "max_position_embeddings": tiny.CONTEXT,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "hidden_act": "silu",
            "tie_word_embeddings": False,
            "attention_bias": False,
            "mlp_bias": False,
            "torch_dtype": "float32",
            **ends,
        },
    )


def write_json(path: pathlib.Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
