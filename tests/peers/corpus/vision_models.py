"""torchvision's and timm's networks, the detectors with their suppression of boxes, with random weights."""

import functools

import torch
import torchvision
from example import Example, export
from torchvision.models import detection, segmentation

try:
    import timm
except ImportError:
    timm = None

CLASSIFIERS = ("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "googlenet", "inception_v3", "mnasnet0_5", "mobilenet_v2",
               "mobilenet_v3_small", "regnet_y_400mf", "resnet18", "resnet50", "resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_1",
               "swin_t", "vgg11_bn", "vit_b_16", "maxvit_t")  # fmt: skip
TIMM = ("efficientformer_l1", "ghostnet_100", "hrnet_w18_small", "levit_128s", "mobilevit_xxs", "repvgg_a0", "edgenext_xx_small",
        "lcnet_050", "resnest14d", "tinynet_e", "xcit_nano_12_p16_224", "poolformer_s12", "mobileone_s0", "fastvit_t8")  # fmt: skip


def classifier(name):
    more = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    side = 299 if name == "inception_v3" else 224
    return Example(getattr(torchvision.models, name)(weights=None, **more), (torch.randn(1, 3, side, side),), ("image",),
                   {"image": {0: "batch"}} if name not in ("swin_t", "maxvit_t") else {}, opset=18)  # fmt: skip


def from_timm(name):
    return Example(timm.create_model(name, pretrained=False), (torch.randn(1, 3, 224, 224),), ("image",), opset=18)


class Detector(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, image):
        return tuple(self.network([image])[0].values())


def detector(name):
    more = {"min_size": 160, "max_size": 160} if "rcnn" in name or "retinanet" in name or "fcos" in name else {}
    network = getattr(detection, name)(weights=None, weights_backbone=None, num_classes=7, **more)
    return Example(Detector(network), (torch.rand(3, 160, 160),), ("image",), opset=18)


def segmenter(name):
    network = getattr(segmentation, name)(weights=None, weights_backbone=None, num_classes=5, aux_loss=False)

    class Out(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, image):
            return self.network(image)["out"]

    return Example(Out(), (torch.randn(1, 3, 128, 128),), ("image",), opset=18)


MODELS = {f"torchvision/{name}": functools.partial(export, name, functools.partial(maker, name), exporter)
          for names, maker, exporter in (
              (CLASSIFIERS, classifier, "script"),
              (("fasterrcnn_mobilenet_v3_large_320_fpn", "maskrcnn_resnet50_fpn", "keypointrcnn_resnet50_fpn", "retinanet_resnet50_fpn",
                "ssdlite320_mobilenet_v3_large", "fcos_resnet50_fpn"), detector, "script"),
              (("deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "fcn_resnet50"), segmenter, "export"))
          for name in names}  # fmt: skip
if timm:
    MODELS |= {f"timm/{name}": functools.partial(export, name, functools.partial(from_timm, name), "export") for name in TIMM}
