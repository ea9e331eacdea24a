"""Architectures of other people's packages on device "tiny": outputs and gradients beside the CPU's, with random weights.

usage: torch_architectures [TEXT]..
Of transformers, torchvision and timm those that are installed (beside PyTorch, in an environment of their own); with TEXT
those whose name has it.  A row for each: the largest difference of the output and of a gradient, as a part of the largest
element, and what the CPU computed instead.  Networks that normalise few elements make much of rounding: those are in float64.
The exit status is 1 if one differs or fails.
"""

import copy
import importlib
import sys
import types
import warnings

import torch
from torch.nn import functional as F

import tiny.torch as tiny

OUTPUT_MAX = 2e-3  # of the largest element
GRADIENT_MAX = 2e-2
WORDS = 100

# torchvision's wheels have operators for CUDA alone; its networks need none of them.
sys.modules["torchvision._meta_registrations"] = types.ModuleType("torchvision._meta_registrations")


def package(name):
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError) as error:
        print(f"without {name}: {error}")
        return None


def words(columns=10):
    return torch.randint(3, WORDS, (2, columns))


def of_transformers(tr):
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    text = {**small, "vocab_size": WORDS}
    grouped = {**text, "num_key_value_heads": 2}
    x = words()
    mask = torch.ones_like(x)
    mask[1, 6:] = 0
    nothing = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    yield "BERT", lambda: tr.BertForSequenceClassification(tr.BertConfig(**text, **nothing)), {
        "input_ids": x, "attention_mask": mask, "labels": torch.tensor([0, 1])}
    yield "GPT-2", lambda: tr.GPT2LMHeadModel(tr.GPT2Config(
        n_embd=32, n_layer=2, n_head=4, vocab_size=WORDS, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=1,
        eos_token_id=2)), {"input_ids": x, "labels": x}
    yield "T5", lambda: tr.T5ForConditionalGeneration(tr.T5Config(
        d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=WORDS, dropout_rate=0.0, decoder_start_token_id=0)), {
        "input_ids": x, "labels": words(6)}
    yield "ViT", lambda: tr.ViTForImageClassification(tr.ViTConfig(**small, **nothing, image_size=32, patch_size=8, num_labels=5)), {
        "pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([0, 1])}
    for name in ("Llama", "Mistral", "Qwen2", "Mixtral"):
        yield name, lambda: getattr(tr, name + "ForCausalLM")(getattr(tr, name + "Config")(**grouped)), {"input_ids": x, "labels": x}
    yield "Whisper", lambda: tr.WhisperForConditionalGeneration(tr.WhisperConfig(
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64,
        decoder_ffn_dim=64, vocab_size=WORDS, num_mel_bins=8, max_source_positions=20, max_target_positions=20, dropout=0.0,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)), {
        "input_features": torch.randn(2, 8, 40), "labels": words(8)}


def of_torchvision(tv):
    models = importlib.import_module("torchvision.models")
    for name, size in (("resnet18", 64), ("mobilenet_v3_small", 64), ("efficientnet_b0", 64), ("convnext_tiny", 64), ("swin_t", 64),
                       ("vit_b_32", 224), ("densenet121", 64), ("regnet_y_400mf", 64), ("squeezenet1_1", 64)):
        yield "torchvision " + name, lambda: getattr(models, name)(num_classes=10), {"x": torch.randn(2, 3, size, size)}


def of_timm(timm):
    for name, size in (("resnet26d", 64), ("ghostnet_100", 64), ("convnext_atto", 64), ("swin_tiny_patch4_window7_224", 224),
                       ("deit_tiny_patch16_224", 224), ("mixer_s32_224", 224), ("nfnet_l0", 64), ("levit_128s", 224),
                       ("hrnet_w18_small", 64), ("xcit_nano_12_p16_224", 224), ("edgenext_xx_small", 64)):
        yield "timm " + name, lambda: timm.create_model(name, num_classes=10), {"x": torch.randn(2, 3, size, size)}


PACKAGES = {"transformers": of_transformers, "torchvision": of_torchvision, "timm": of_timm}


def without_chance(net):
    for module in net.modules():
        for name in ("p", "drop_rate", "drop_prob"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return net


def step(net, given):
    """(output, gradients by name) of one step's loss."""
    y = net(given["x"]) if "x" in given else net(**given)
    output = y if isinstance(y, torch.Tensor) else y.logits
    loss = F.cross_entropy(y, torch.zeros(len(y), dtype=torch.long, device=y.device)) if output is y else y.loss
    loss.backward()
    return output.detach().cpu(), {name: p.grad.cpu() for name, p in net.named_parameters() if p.grad is not None}


def difference(got, want, least=0.0):
    return ((got - want).abs().max() / max(want.abs().max().item(), least, 1e-30)).item()


def compare(make, given, dtype):
    torch.manual_seed(0)
    net = without_chance(make()).to(dtype).train()
    ours = copy.deepcopy(net).to("tiny")
    given = {name: x.to(dtype) if x.is_floating_point() else x for name, x in given.items()}
    tiny.clear_fallbacks()
    want, want_grads = step(net, given)
    got, got_grads = step(ours, {name: x.to("tiny") for name, x in given.items()})
    if got_grads.keys() != want_grads.keys():
        return False, f"gradients of other parameters: {sorted(got_grads.keys() ^ want_grads.keys())}"
    least = 1e-3 * max(grad.abs().max().item() for grad in want_grads.values())  # what is far below the others is rounding
    output = difference(got, want)
    gradient = max(difference(got_grads[name], grad, least) for name, grad in want_grads.items())
    return output <= OUTPUT_MAX and gradient <= GRADIENT_MAX, (
        f"output {output:.0e}, gradients {gradient:.0e}, on the CPU {tiny.fallbacks() or 'nothing'}")


def main():
    warnings.simplefilter("ignore")
    wanted, is_good = sys.argv[1:], True
    for name, cases in PACKAGES.items():
        found = package(name)
        for case, make, given in cases(found) if found else ():
            if wanted and not any(text.lower() in case.lower() for text in wanted):
                continue
            try:
                good, text = compare(make, given, torch.float64 if "x" in given and given["x"].shape[-1] < 100 else torch.float32)
            except (RuntimeError, NotImplementedError, ValueError, IndexError, AttributeError) as error:
                good, text = False, repr(error)[:300]
            is_good = is_good and good
            print(f"{'equal' if good else 'DIFFERS'}  {case}: {text}", flush=True)
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
