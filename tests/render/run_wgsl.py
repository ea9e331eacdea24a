"""Runs modules of WGSL on whatever implements WebGPU here, a processor included.

Usage: run_wgsl.py FOLDER

For each NAME.wgsl of the folder: the module is made, which checks it.  Where there is a NAME.run beside it, it is run:
the first line of that is the entry, the next how many groups, the next the numbers; the contents of buffers are files
NAME.0, NAME.1 .., and after the run what is in them; the last of them is the status.  Exits 77 where there is no
package wgpu or no device, 1 with what is said of each module that is refused.
"""

import pathlib
import struct
import sys

SKIP = 77
HIGHEST_BUFFERS = "max-storage-buffers-per-shader-stage"

try:
    import wgpu
except ImportError as error:
    print(error)
    sys.exit(SKIP)


def open_device():
    adapters = [adapter for adapter in wgpu.gpu.enumerate_adapters_sync()]
    # Vulkan's before others: OpenGL's has fewer buffers.
    adapters.sort(key=lambda adapter: adapter.info["backend_type"] != "Vulkan")
    if not adapters:
        print("no adapter of WebGPU")
        sys.exit(SKIP)
    best = adapters[0]
    return best.request_device_sync(required_limits={HIGHEST_BUFFERS: best.limits[HIGHEST_BUFFERS]})


def run(device, module, file):
    entry, groups, numbers = file.with_suffix(".run").read_text().splitlines()
    contents = []
    while (part := file.with_suffix(f".{len(contents)}")).exists():
        contents.append((part, part.read_bytes()))
    values = [int(number) for number in numbers.split()]
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    buffers = [device.create_buffer_with_data(data=data + bytes(-len(data) % 4), usage=usage) for _, data in contents]
    buffers.insert(-1, device.create_buffer_with_data(data=struct.pack(f"{len(values)}i", *values), usage=usage))
    read_only = [line for line in file.read_text().splitlines() if "var<storage, read>" in line]
    kinds = {int(line.split("@binding(")[1].split(")")[0]) for line in read_only}
    layout = device.create_bind_group_layout(entries=[
        {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE,
         "buffer": {"type": "read-only-storage" if i in kinds else "storage"}} for i in range(len(buffers))])
    pipeline = device.create_compute_pipeline(
        layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
        compute={"module": module, "entry_point": entry})
    group = device.create_bind_group(layout=layout, entries=[
        {"binding": i, "resource": {"buffer": buffer}} for i, buffer in enumerate(buffers)])
    encoder = device.create_command_encoder()
    work = encoder.begin_compute_pass()
    work.set_pipeline(pipeline)
    work.set_bind_group(0, group)
    work.dispatch_workgroups(int(groups))
    work.end()
    device.queue.submit([encoder.finish()])
    del buffers[-2]
    for (part, data), buffer in zip(contents, buffers):
        part.write_bytes(bytes(device.queue.read_buffer(buffer))[:len(data)])


def main(folder):
    device, refused = open_device(), 0
    for file in sorted(pathlib.Path(folder).glob("*.wgsl")):
        try:
            module = device.create_shader_module(code=file.read_text())
            if file.with_suffix(".run").exists():
                run(device, module, file)
        except wgpu.GPUError as error:
            refused += 1
            print(f"{file.name}: {error}")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
