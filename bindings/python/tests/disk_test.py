"""Tensors that lie in files: Tensor(Path), device="disk:PATH", and what archives have in them."""

import io
import os
import struct
import tarfile
import unittest
import zipfile
from multiprocessing import shared_memory

import tiny
from support import Folder
from tiny import Tensor, nn


class Disk(Folder):
    def test_a_path_is_its_bytes(self):
        path = self.file("a", bytes(range(10)))
        t = Tensor(path)
        self.assertEqual((t.shape, t.dtype, t.device), ((10,), tiny.uint8, f"DISK:{path}"))
        self.assertEqual(t.tolist(), list(range(10)))
        self.assertEqual(Tensor(path, dtype="int16").tolist(), list(struct.unpack("<5h", bytes(range(10)))))
        here = Tensor(path, device="CPU")
        self.assertEqual((here.device.upper(), here[3].item()), ("CPU", 3))
        self.assertEqual(Tensor(self.file("none", b"")).shape, (0,))
        with self.assertRaises(FileNotFoundError):
            Tensor(self.folder / "absent")

    def test_views_are_places_in_the_file(self):
        path = self.file("a", bytes(range(64)))
        t = Tensor.empty(4, 16, dtype="uint8", device=f"disk:{path}")
        for view, want in ((t[1], range(16, 32)), (t[1:3].reshape(32)[4:6], (20, 21)), (t[:, 2], (2, 18, 34, 50)),
                           (t.T[3], (3, 19, 35, 51)), (t.bitcast("uint16")[1, 0], 16 + 17 * 256),
                           (t[2:].bitcast("uint32").flatten()[0], int.from_bytes(bytes(range(32, 36)), "little"))):
            self.assertTrue(view.device.startswith("DISK:"))
            self.assertEqual(view.tolist(), list(want) if not isinstance(want, int) else want)
        with self.assertRaisesRegex(RuntimeError, "are not whole elements of 4 bytes"):
            t[:, :3].reshape(4, 3)[0].to("CPU").bitcast("uint32")
        with open(path, "r+b") as file:  # read when it is needed
            file.write(b"\x63")
        self.assertEqual(t[0, 0].item(), 99)

    def test_an_assignment_has_written_the_file(self):
        path = self.folder / "new"
        t = Tensor.empty(3, 4, dtype="int32", device=f"disk:{path}")
        self.assertEqual((path.stat().st_size, t.tolist()), (48, [[0] * 4] * 3))
        t[1] = [1, 2, 3, 4]
        t[:, 0] = 9
        t[2:].assign(Tensor([[5, 6, 7, 8]]).cast("int32"))
        want = [[9, 0, 0, 0], [9, 2, 3, 4], [5, 6, 7, 8]]
        self.assertEqual(struct.unpack("<12i", path.read_bytes()), tuple(sum(want, [])))
        self.assertEqual(t.tolist(), want)
        t.bitcast("float32")[0].assign([1.0, 2.0, 3.0, 4.0])
        self.assertEqual(struct.unpack("<4f", path.read_bytes()[:16]), (1, 2, 3, 4))
        self.assertEqual(t[0].bitcast("float32").tolist(), [1, 2, 3, 4])
        with self.assertRaisesRegex(NotImplementedError, "integers and slices are written to"):
            t[Tensor([0])] = 1

    def test_to_and_from_files(self):
        path = self.folder / "x"
        x = Tensor([[1.0, 2.0], [3.0, 4.0]])
        there = (x * 2).to(f"disk:{path}")
        self.assertEqual(struct.unpack("<4f", path.read_bytes()), (2, 4, 6, 8))
        here = there.to("CPU").realize()
        here.assign(here * 0).realize()
        self.assertEqual((there + 1).tolist(), [[3, 5], [7, 9]])
        self.assertEqual(there.to(f"disk:{self.folder / 'y'}").sum().item(), 20)
        self.assertEqual((self.folder / "y").read_bytes(), path.read_bytes())

    @unittest.skipUnless(os.path.isdir("/dev/shm"), "shared memory has no folder here")
    def test_shared_memory(self):
        memory = shared_memory.SharedMemory(create=True, size=12)
        try:
            Tensor([1, 2, 3], dtype="int32").to(f"disk:shm:{memory.name}")
            self.assertEqual(struct.unpack("<3i", memory.buf[:12]), (1, 2, 3))
            memory.buf[:4] = struct.pack("<i", 7)
            there = Tensor.empty(3, dtype="int32", device=f"disk:shm:/{memory.name}")
            self.assertEqual(there.to("CPU").tolist(), [7, 2, 3])
            self.assertFalse(os.path.exists(f"shm:{memory.name}"))
        finally:
            memory.close()
            memory.unlink()

    def test_elements_at_odd_places(self):
        path = self.file("odd", b"x" + struct.pack("<4i", 1, 2, 3, 4))
        t = Tensor(path)[1:].bitcast("int32")
        self.assertEqual(t.tolist(), [1, 2, 3, 4])
        t[1:3].assign([7, 8])
        self.assertEqual(struct.unpack("<4i", path.read_bytes()[1:]), (1, 7, 8, 4))

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_file_that_can_only_be_read(self):
        path = self.file("a", bytes(4))
        path.chmod(0o444)
        t = Tensor(path)
        self.assertEqual(t.tolist(), [0] * 4)
        with self.assertRaises(PermissionError):
            t.assign([1, 2, 3, 4])

    def test_places_that_are_not_there(self):
        from tiny._disk import File
        path = self.file("a", bytes(8))
        with self.assertRaisesRegex(ValueError, "are not in its 8 bytes"):
            File(path).tensor(4, tiny.int32, (2,))
        with self.assertRaisesRegex(ValueError, "a path is wanted"):
            Tensor.empty(1, device="disk:")


class Archives(Folder):
    FILES = {"a/one.txt": b"Hello", "two.bin": bytes(range(256)), "none": b"", "long" * 40: b"x" * 600}

    def test_tar(self):
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            stream = io.BytesIO()
            with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
                archive.addfile(self.info("folder", tarfile.DIRTYPE))
                for name, content in self.FILES.items():
                    info = tarfile.TarInfo(name if form != tarfile.USTAR_FORMAT else name[-90:])
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
            for source in (Tensor(stream.getvalue()), self.file("a.tar", stream.getvalue())):
                found = nn.state.tar_extract(source)
                self.assertEqual([bytes(t.tolist()) for t in found.values()], list(self.FILES.values()))
        with self.assertRaises(tarfile.ReadError):
            nn.state.tar_extract(Tensor(b"This is no archive" * 100))

    @staticmethod
    def info(name, kind):
        made = tarfile.TarInfo(name)
        made.type = kind
        return made

    def test_zip(self):
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            path = self.folder / "a.zip"
            with zipfile.ZipFile(path, "w", method) as archive:
                for name, content in self.FILES.items():
                    archive.writestr(name, content)
            found = nn.state.zip_extract(path)
            self.assertEqual({name: bytes(t.tolist()) for name, t in found.items()}, self.FILES)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
            archive.writestr("a", b"b" * 99)
        with self.assertRaisesRegex(NotImplementedError, "compressed by method 12"):
            nn.state.zip_extract(path)
        with self.assertRaises(zipfile.BadZipFile):
            nn.state.zip_extract(Tensor(b"no archive"))

    def test_a_tensor_is_a_file_to_read(self):
        file = nn.state.TensorIO(Tensor(b"Hello World!"))
        self.assertEqual((file.read(1), file.read(5), file.read(100), file.read(9)), (b"H", b"ello ", b"World!", b""))
        self.assertEqual((file.seek(-3, 2), file.read(), file.seek(99)), (9, b"ld!", 12))
        with self.assertRaisesRegex(ValueError, "bytes of one axis"):
            nn.state.TensorIO(Tensor([1.0]))


if __name__ == "__main__":
    unittest.main()
