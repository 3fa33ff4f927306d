"""The data that trials train on, and what their runs leave on the disk."""
import hashlib
import json
import random
import struct

SIDE = 28


def write_data(folder, test_images):
    """Writes a small data set in MNIST's format: a bright bar whose row tells the class, and noise."""
    folder.mkdir(parents=True)
    draw = random.Random(7)
    for stem, count in (("train", 240), ("t10k", test_images)):
        labels = bytes(draw.randrange(10) for _ in range(count))
        pixels = bytearray()
        for label in labels:
            image = bytearray(draw.randbytes(SIDE * SIDE))
            begin = (4 + 2 * label) * SIDE
            image[begin : begin + SIDE] = b"\xff" * SIDE
            pixels += image
        write_idx(folder / f"{stem}-images-idx3-ubyte", (count, SIDE, SIDE), pixels)
        write_idx(folder / f"{stem}-labels-idx1-ubyte", (count,), labels)


def write_idx(path, extents, values):
    path.write_bytes(struct.pack(f">BBBB{len(extents)}I", 0, 0, 8, len(extents), *extents) + values)


def tensors_of(path):
    """A digest of the tensors of a safetensors file. Metadata such as seconds and the run's name do not count."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode() + data[8 + length :]).hexdigest()


def results_of(job_folder):
    """What a run that ends well leaves: its model, and each rank's last checkpoint, by file."""
    found = {"model": hashlib.sha256((job_folder / "model.safetensors").read_bytes()).hexdigest()}
    for folder in part_folders(job_folder / "run"):
        newest = checkpoints(folder)[-1]
        found[str(newest.relative_to(job_folder))] = tensors_of(newest)
    return found


def part_folders(run):
    """The folders of a run with the ranks' parts; rank 0's is the first."""
    return [run, *sorted(run.glob("rank-*"), key=lambda path: int(path.name[5:]))]


def checkpoints(folder):
    """The checkpoints in a folder, oldest first."""
    return sorted(folder.glob("step-*.tern"))


def temporaries(folder):
    """Files that a process left half written."""
    return sorted(path for path in folder.rglob("*") if ".tmp-" in path.name)
