"""transformers' own networks with small configurations and random weights, by torch's exporters."""

import functools

import torch
import transformers as hub
from example import Example, export
from torch import nn

WORDS = 300
TEXT = {"vocab_size": WORDS, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
PICTURE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "image_size": 64,
           "patch_size": 8}  # fmt: skip


class Tensors(nn.Module):
    """A network as a function of its inputs in order, whose outputs are the tensors of its own that are no caches."""

    def __init__(self, network, names, more=None):
        super().__init__()
        self.network, self.names, self.more = network, names, more or {}

    def forward(self, *given):
        out = self.network(**dict(zip(self.names, given)), **self.more)
        return tuple(value for value in out.to_tuple() if isinstance(value, torch.Tensor))


class ThreeInputs(Tensors):
    def forward(self, a, b, c):
        return super().forward(a, b, c)


class TwoInputs(Tensors):
    def forward(self, a, b):
        return super().forward(a, b)


class OneInput(Tensors):
    def forward(self, a):
        return super().forward(a)


def ids(*shape):
    return torch.randint(0, WORDS, shape)


def ones(*shape):
    return torch.ones(shape, dtype=torch.int64)


def of(network, free=True, **given):
    names = tuple(given)
    more = {"use_cache": False} if hasattr(network.config, "use_cache") else {}
    module = {1: OneInput, 2: TwoInputs, 3: ThreeInputs}[len(names)](network, names, more)
    axes = {name: {0: "batch", 1: "sequence"} if value.ndim == 2 else {0: "batch"} for name, value in given.items()}
    return Example(module, tuple(given.values()), names, axes if free else {}, opset=18)


def text(network):
    return lambda: of(network(), input_ids=ids(2, 9), attention_mask=ones(2, 9))


def picture(network, side=64):
    return lambda: of(network(), pixel_values=torch.randn(2, 3, side, side))


EAGER = {"attn_implementation": "eager"}
BOTH_SIDES = {"vocab_size": WORDS, "d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
              "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, **EAGER}  # fmt: skip
T5 = {"vocab_size": WORDS, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
WHISPER = {**BOTH_SIDES, "num_mel_bins": 20, "max_source_positions": 100, "max_target_positions": 32, "pad_token_id": 0,
           "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}  # fmt: skip
WAVE = {**TEXT, "conv_dim": (32, 32, 32), "conv_kernel": (10, 3, 3), "conv_stride": (5, 2, 2), "num_conv_pos_embeddings": 16,
        "num_conv_pos_embedding_groups": 4, **EAGER}  # fmt: skip
MAKERS = {
    "bert": text(lambda: hub.BertModel(hub.BertConfig(**TEXT, **EAGER))),
    "bert_sdpa": text(lambda: hub.BertForSequenceClassification(hub.BertConfig(**TEXT))),
    "roberta": text(lambda: hub.RobertaForTokenClassification(hub.RobertaConfig(**TEXT, **EAGER))),
    "distilbert": text(lambda: hub.DistilBertModel(hub.DistilBertConfig(vocab_size=WORDS, dim=64, n_layers=2, n_heads=4, hidden_dim=128, **EAGER))),
    "albert": text(lambda: hub.AlbertModel(hub.AlbertConfig(**TEXT, embedding_size=32, **EAGER))),
    "electra": text(lambda: hub.ElectraForPreTraining(hub.ElectraConfig(**TEXT, embedding_size=32, **EAGER))),
    "mpnet": text(lambda: hub.MPNetModel(hub.MPNetConfig(**TEXT))),
    "deberta_v2": text(lambda: hub.DebertaV2Model(hub.DebertaV2Config(**TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=16))),
    "modernbert": text(lambda: hub.ModernBertModel(hub.ModernBertConfig(**TEXT, pad_token_id=0, **EAGER))),
    "gpt2": text(lambda: hub.GPT2LMHeadModel(hub.GPT2Config(vocab_size=WORDS, n_embd=64, n_layer=2, n_head=4, n_positions=64, **EAGER))),
    "gpt_neox": text(lambda: hub.GPTNeoXForCausalLM(hub.GPTNeoXConfig(**TEXT, **EAGER))),
    "llama": text(lambda: hub.LlamaForCausalLM(hub.LlamaConfig(**TEXT, num_key_value_heads=2, **EAGER))),
    "qwen2": text(lambda: hub.Qwen2ForCausalLM(hub.Qwen2Config(**TEXT, num_key_value_heads=2, **EAGER))),
    "qwen3": text(lambda: hub.Qwen3ForCausalLM(hub.Qwen3Config(**TEXT, num_key_value_heads=2, head_dim=16, **EAGER))),
    "gemma2": text(lambda: hub.Gemma2ForCausalLM(hub.Gemma2Config(**TEXT, num_key_value_heads=2, head_dim=16, **EAGER))),
    "phi": text(lambda: hub.PhiForCausalLM(hub.PhiConfig(**TEXT, **EAGER))),
    "mistral": text(lambda: hub.MistralForCausalLM(hub.MistralConfig(**TEXT, num_key_value_heads=2, **EAGER))),
    "opt": text(lambda: hub.OPTForCausalLM(hub.OPTConfig(vocab_size=WORDS, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128, word_embed_proj_dim=64, **EAGER))),
    "bloom": text(lambda: hub.BloomForCausalLM(hub.BloomConfig(vocab_size=WORDS, hidden_size=64, n_layer=2, n_head=4))),
    "t5_encoder": text(lambda: hub.T5EncoderModel(hub.T5Config(**T5))),
    "t5": lambda: of(hub.T5ForConditionalGeneration(hub.T5Config(**T5, decoder_start_token_id=0)),
                     False, input_ids=ids(1, 9), attention_mask=ones(1, 9), decoder_input_ids=ids(1, 5)),
    "bart": lambda: of(hub.BartModel(hub.BartConfig(**BOTH_SIDES, max_position_embeddings=64)),
                       False, input_ids=ids(1, 9), attention_mask=ones(1, 9), decoder_input_ids=ids(1, 5)),
    "whisper_encoder": lambda: of(hub.models.whisper.modeling_whisper.WhisperEncoder(hub.WhisperConfig(**WHISPER)),
                                  False, input_features=torch.randn(1, 20, 200)),
    "whisper": lambda: of(hub.WhisperForConditionalGeneration(hub.WhisperConfig(**WHISPER)),
                          False, input_features=torch.randn(1, 20, 200), decoder_input_ids=ids(1, 5)),
    "wav2vec2": lambda: of(hub.Wav2Vec2ForCTC(hub.Wav2Vec2Config(**WAVE)),
                           False, input_values=torch.randn(1, 4000)),
    "clip": lambda: of(hub.CLIPModel(hub.CLIPConfig(text_config={**TEXT, "eos_token_id": 2}, vision_config=PICTURE, projection_dim=32, **EAGER)), False,
                       input_ids=ids(2, 9), pixel_values=torch.randn(2, 3, 64, 64), attention_mask=ones(2, 9)),
    "clip_vision": picture(lambda: hub.CLIPVisionModel(hub.CLIPVisionConfig(**PICTURE, **EAGER))),
    "siglip_vision": picture(lambda: hub.SiglipVisionModel(hub.SiglipVisionConfig(**PICTURE, **EAGER))),
    "vit": picture(lambda: hub.ViTForImageClassification(hub.ViTConfig(**PICTURE, **EAGER))),
    "deit": picture(lambda: hub.DeiTModel(hub.DeiTConfig(**PICTURE, **EAGER))),
    "beit": picture(lambda: hub.BeitModel(hub.BeitConfig(**PICTURE, use_relative_position_bias=True))),
    "dinov2": picture(lambda: hub.Dinov2Model(hub.Dinov2Config(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8, **EAGER))),
    "swin": picture(lambda: hub.SwinModel(hub.SwinConfig(image_size=64, patch_size=4, embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=4))),
    "convnext": picture(lambda: hub.ConvNextModel(hub.ConvNextConfig(hidden_sizes=[24, 48, 96], depths=[1, 1, 1], num_stages=3))),
    "segformer": picture(lambda: hub.SegformerForSemanticSegmentation(hub.SegformerConfig(hidden_sizes=[16, 32, 48, 64], decoder_hidden_size=32, depths=[1, 1, 1, 1]))),
    "mobilevit": picture(lambda: hub.MobileViTModel(hub.MobileViTConfig(image_size=64))),
    "resnet": picture(lambda: hub.ResNetModel(hub.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1]))),
    "regnet": picture(lambda: hub.RegNetModel(hub.RegNetConfig(embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 2, 1], groups_width=8))),
    "focalnet": picture(lambda: hub.FocalNetModel(hub.FocalNetConfig(image_size=64, embed_dim=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1]))),
    "pvt_v2": picture(lambda: hub.PvtV2Model(hub.PvtV2Config(image_size=64, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4]))),
    "swinv2": picture(lambda: hub.Swinv2Model(hub.Swinv2Config(image_size=64, patch_size=4, embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=4))),
    "deberta": text(lambda: hub.DebertaModel(hub.DebertaConfig(**TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"]))),
    "xlnet": text(lambda: hub.XLNetModel(hub.XLNetConfig(vocab_size=WORDS, d_model=64, n_layer=2, n_head=4, d_inner=128))),
    "funnel": text(lambda: hub.FunnelModel(hub.FunnelConfig(vocab_size=WORDS, block_sizes=[1, 1], d_model=64, n_head=4, d_head=16, d_inner=128))),
    "mobilebert": text(lambda: hub.MobileBertModel(hub.MobileBertConfig(**TEXT, embedding_size=32, intra_bottleneck_size=32))),
    "phi3": text(lambda: hub.Phi3ForCausalLM(hub.Phi3Config(**TEXT, num_key_value_heads=2, pad_token_id=0, **EAGER))),
    "wav2vec2_conformer": lambda: of(hub.Wav2Vec2ConformerModel(hub.Wav2Vec2ConformerConfig(**WAVE, position_embeddings_type="relative", max_source_positions=300)),
                                     False, input_values=torch.randn(1, 4000)),
    "mamba": lambda: of(hub.MambaModel(hub.MambaConfig(vocab_size=WORDS, hidden_size=32, state_size=8, num_hidden_layers=1)), False, input_ids=ids(1, 8)),
    "yolos": picture(lambda: hub.YolosForObjectDetection(hub.YolosConfig(**{**PICTURE, "image_size": [64, 64]}, num_detection_tokens=10, **EAGER))),
}  # fmt: skip
# By both of torch's exporters, tracing first.
MODELS = {f"transformers_{exporter}/{name}": functools.partial(export, name, maker, exporter)
          for name, maker in MAKERS.items() for exporter in ("script", "export")}  # fmt: skip
