"""Architectures as packages publish them, in their own sizes with random weights: timm's, torchvision's, those of
segmentation_models_pytorch and diffusers (small configurations), each by one of torch's exporters."""

import functools

import torch
from example import Example, export
from torch import nn


def declare_torchvision_operators():
    """What torchvision's own library declares, which does not load beside a torch of another build. Nothing here
    computes with them."""
    try:
        torch.ops.torchvision.nms  # noqa: B018
    except (AttributeError, RuntimeError):
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
                       "int sampling_ratio, bool aligned) -> Tensor")  # fmt: skip
        library.define("roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) "
                       "-> (Tensor, Tensor)")  # fmt: skip
        declare_torchvision_operators.library = library  # for as long as the process lives


TIMM = """
bat_resnext26ts botnet26t_256 caformer_s18 cait_xxs24_224 coat_tiny coatnet_pico_rw_224 convformer_s18 convit_tiny
convmixer_768_32 convnext_atto convnextv2_atto crossvit_tiny_240 cspdarknet53 cspresnet50 darknet53 davit_tiny
deit3_small_patch16_224 densenet121 dla34 dm_nfnet_f0 dpn68 eca_botnext26ts_256 ecaresnet26t edgenext_xx_small
efficientformer_l1 efficientformerv2_s0 efficientnet_b0 efficientnetv2_rw_t efficientvit_b0 efficientvit_m0
ese_vovnet19b_dw eva02_tiny_patch14_224 fasternet_t0 fastvit_t8 fbnetc_100 focalnet_tiny_srf gcresnext26ts
gcvit_xxtiny gernet_s ghostnetv2_100 gmixer_12_224 gmlp_ti16_224 hardcorenas_a hgnetv2_b0 hiera_tiny_224
hrnet_w18_small inception_next_atto inception_v3 inception_v4 lambda_resnet26t lcnet_050 legacy_senet154 levit_128s
levit_conv_128s mambaout_femto maxvit_rmlp_pico_rw_256 maxxvit_rmlp_nano_rw_256 mixer_s32_224 mixnet_s mnasnet_small
mobilenet_edgetpu_v2_xs mobilenetv3_small_100 mobilenetv4_conv_small mobilenetv4_hybrid_medium mobileone_s0
mobilevit_xxs mobilevitv2_050 nasnetalarge nest_tiny nf_regnet_b0 pit_ti_224 pnasnet5large poolformer_s12 pvt_v2_b0
rdnet_tiny regnety_004 regnetz_005 repvgg_a0 repvit_m0_9 res2net50_14w_8s resmlp_12_224 resnest14d resnet18
resnet32ts resnet50d resnetaa50 resnetv2_50 resnext26ts rexnet_100 selecsls42b sequencer2d_s seresnet33ts shvit_s1
skresnet18 spnasnet_100 starnet_s1 swiftformer_xs swin_s3_tiny_224 swin_tiny_patch4_window7_224 swinv2_cr_tiny_224
swinv2_tiny_window8_256 tiny_vit_5m_224 tinynet_e tnt_s_patch16_224 tresnet_m twins_pcpvt_small twins_svt_small
vgg11_bn visformer_tiny vit_small_r26_s32_224 vit_tiny_patch16_224 vitamin_small_224 wide_resnet50_2 xception41
xcit_nano_12_p16_224
""".split()
# Which only torch.export writes.
TIMM_EXPORTED = ["csatv2", "halonet26t", "haloregnetz_b", "volo_d1_224"]
SIDE_MAX = 256  # of a picture, where an architecture takes any


def spread(module):
    """Parameters that begin as one number (scales of layers, biases) are drawn: else they hide what they multiply."""
    for parameter in module.parameters():
        if parameter.numel() > 1 and parameter.is_floating_point() and parameter.detach().float().std() < 1e-3:
            with torch.no_grad():
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return module


def timm(name):
    declare_torchvision_operators()
    import timm as package  # here and below: a package that is not there leaves out its own models alone

    module = package.create_model(name, pretrained=False, exportable=True)
    size = module.default_cfg.get("input_size", (3, 224, 224))
    if not module.default_cfg.get("fixed_input_size"):
        size = (3, min(size[1], SIDE_MAX), min(size[2], SIDE_MAX))
    return Example(spread(module), (torch.randn(1, *size),), opset=18)


# Inputs of each.
TORCHVISION = {name: [(1, 3, 224, 224)] for name in (
    "googlenet", "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5", "efficientnet_v2_s", "convnext_tiny",
    "regnet_x_400mf")} | {"r3d_18": [(1, 3, 8, 64, 64)], "mc3_18": [(1, 3, 8, 64, 64)], "r2plus1d_18": [(1, 3, 8, 64, 64)],
    "mvit_v2_s": [(1, 3, 16, 224, 224)], "swin3d_t": [(1, 3, 8, 64, 64)], "raft_small": [(1, 3, 128, 128)] * 2,
    "deeplabv3_mobilenet_v3_large": [(1, 3, 160, 160)], "lraspp_mobilenet_v3_large": [(1, 3, 160, 160)],
    "fcn_resnet50": [(1, 3, 160, 160)]}  # fmt: skip
DETECTORS = ("retinanet_resnet50_fpn_v2", "fcos_resnet50_fpn")


class OfOnePicture(nn.Module):
    def __init__(self, detector):
        super().__init__()
        self.detector = detector

    def forward(self, picture):
        found = self.detector([picture])[0]
        return found["boxes"], found["scores"], found["labels"]


def torchvision(name):
    declare_torchvision_operators()
    from torchvision import models

    is_detector = name in DETECTORS
    more = {"weights_backbone": None} if is_detector or "_mobilenet" in name or name.startswith("fcn") else {}
    module = spread(models.get_model(name, weights=None, **more))
    if is_detector:
        return Example(OfOnePicture(module), (torch.rand(3, 240, 320),), opset=18)
    return Example(module, tuple(torch.rand(shape) for shape in TORCHVISION[name]), opset=18)


# (decoder, encoder)
SEGMENTATION = [(decoder, "resnet18") for decoder in (
    "unet", "unetplusplus", "manet", "linknet", "fpn", "pspnet", "pan", "deeplabv3", "deeplabv3plus", "upernet",
    "segformer")] + [("unet", encoder) for encoder in ("mobilenet_v2", "efficientnet-b0", "mit_b0", "xception",
    "mobileone_s0", "densenet121")] + [("dpt", "tu-vit_tiny_patch16_224")]  # fmt: skip


def segmentation(decoder, encoder):
    declare_torchvision_operators()
    import segmentation_models_pytorch as package

    module = package.create_model(decoder, encoder_name=encoder, encoder_weights=None, classes=5)
    side = 224 if decoder == "dpt" else 128
    return Example(spread(module), (torch.randn(1, 3, side, side),), opset=18)


class First(nn.Module):
    """The first result of a network whose arguments are given by name."""

    def __init__(self, network, names=None, function=None):
        super().__init__()
        self.network, self.names, self.function = network, names, function

    def forward(self, *given):
        if self.function:
            return self.function(self.network, *given)
        if self.names:
            return self.network(**dict(zip(self.names, given)), return_dict=False)[0]
        return self.network(*given, return_dict=False)[0]


BLOCKS = {"block_out_channels": (32, 64), "norm_num_groups": 8}
ONE_LAYER = BLOCKS | {"layers_per_block": 1}
CODED = BLOCKS | {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
AT = torch.tensor([7])  # a step of the noise


def diffusers(name):
    declare_torchvision_operators()
    import diffusers as package

    def there_and_back(network, x):
        return network.decode(network.encode(x).latent_dist.mode()).sample

    makers = {
        "unet": lambda: (First(package.UNet2DModel(
            sample_size=32, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"), **ONE_LAYER)), (torch.randn(1, 3, 32, 32), AT)),
        "unet_conditioned": lambda: (First(package.UNet2DConditionModel(
            sample_size=16, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), cross_attention_dim=32,
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), attention_head_dim=8, **ONE_LAYER)),
            (torch.randn(1, 4, 16, 16), AT, torch.randn(1, 9, 32))),
        "unet_video": lambda: (First(package.UNet3DConditionModel(
            down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"), attention_head_dim=8,
            up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"), cross_attention_dim=32, **ONE_LAYER)),
            (torch.randn(1, 4, 4, 16, 16), AT, torch.randn(1, 9, 32))),
        "autoencoder": lambda: (First(package.AutoencoderKL(**CODED), function=there_and_back),
                                (torch.randn(1, 3, 32, 32),)),
        "autoencoder_tiny": lambda: (First(package.AutoencoderTiny()), (torch.randn(1, 3, 64, 64),)),
        "quantised_codes": lambda: (First(package.VQModel(num_vq_embeddings=64, **CODED)), (torch.randn(1, 3, 32, 32),)),
        "dit": lambda: (First(package.DiTTransformer2DModel(
            num_attention_heads=2, attention_head_dim=16, num_layers=2, sample_size=8, in_channels=4, out_channels=8),
            ("hidden_states", "timestep", "class_labels")), (torch.randn(1, 4, 8, 8), AT, torch.tensor([3]))),
        "sd3": lambda: (First(package.SD3Transformer2DModel(
            sample_size=16, num_layers=2, attention_head_dim=8, num_attention_heads=4, joint_attention_dim=32,
            caption_projection_dim=32, pooled_projection_dim=64, out_channels=16)),
            (torch.randn(1, 16, 16, 16), torch.randn(1, 9, 32), torch.randn(1, 64), AT)),
        "cogvideo": lambda: (First(package.CogVideoXTransformer3DModel(
            num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=4, time_embed_dim=8,
            text_embed_dim=16, num_layers=2, sample_width=16, sample_height=16, sample_frames=9, patch_size=2,
            max_text_seq_length=9)), (torch.randn(1, 3, 4, 16, 16), torch.randn(1, 9, 16), AT)),
    }  # fmt: skip
    module, inputs = makers[name]()
    return Example(spread(module), inputs, opset=18)


DIFFUSERS = ("unet", "unet_conditioned", "unet_video", "autoencoder", "autoencoder_tiny", "quantised_codes", "dit", "sd3",
             "cogvideo")  # fmt: skip
MAKERS = {f"timm/{name}": functools.partial(timm, name) for name in TIMM + TIMM_EXPORTED} | {
    f"torchvision/{name}": functools.partial(torchvision, name) for name in (*TORCHVISION, *DETECTORS)} | {
    f"segmentation/{decoder}_{encoder}": functools.partial(segmentation, decoder, encoder)
    for decoder, encoder in SEGMENTATION} | {
    f"diffusers/{name}": functools.partial(diffusers, name) for name in DIFFUSERS}  # fmt: skip
TRACED = {f"torchvision/{name}" for name in DETECTORS}
EXPORTED = {f"timm/{name}" for name in TIMM_EXPORTED} | {"segmentation/pspnet_resnet18", "segmentation/upernet_resnet18"}


def exporter_of(place, name):
    """The exporters in turn, where both write the network."""
    if name in TRACED or name in EXPORTED:
        return "script" if name in TRACED else "export"
    return ("script", "export")[place % 2]


MODELS = {name: functools.partial(export, name, maker, exporter_of(place, name))
          for place, (name, maker) in enumerate(MAKERS.items())}  # fmt: skip
