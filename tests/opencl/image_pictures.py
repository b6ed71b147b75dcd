#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the pictures that `replay --png` writes with the bytes that `replay --dump` prints.

    image_pictures.py TRACESMITH TRACE [--all]     some formats, or one image of each that TRACE writes
"""
import json
import struct
import subprocess
import sys
import zlib

CHANNELS = {"r": "r", "a": "a", "rg": "rg", "ra": "ra", "rgb": "rgb", "rgba": "rgba", "bgra": "bgra",
            "intensity": "l", "luminance": "l", "srgba": "rgba"}
VALUES = {"unorm_int8": "B", "unsigned_int8": "B", "unorm_int16": "H", "unsigned_int16": "H", "unsigned_int32": "I",
          "snorm_int8": "b", "signed_int16": "h", "signed_int32": "i", "half_float": "e", "float": "f"}
PACKED = {"unorm_short_565": ("H", (11, 5, 0), (31, 63, 31)), "unorm_int_101010": ("I", (20, 10, 0), (1023,) * 3)}


def rows(tool, trace, table):
    text = subprocess.run([tool, "view", trace, "--json", "--table", table], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in text.stdout.splitlines()]


def decode(path):
    """Width, height, bits, channels and the samples of an unfiltered PNG."""
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "signature"
    at, packed, header = 8, b"", None
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body), "checksum"
        header = struct.unpack(">IIBBBBB", body) if kind == b"IHDR" else header
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    width, height, bits, colours = header[:4]
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colours]
    raw, row = zlib.decompress(packed), width * channels * bits // 8 + 1
    assert len(raw) == row * height and not any(raw[::row]), "rows"
    raw = b"".join(raw[i + 1:i + row] for i in range(0, len(raw), row))
    return width, height, bits, channels, list(struct.unpack(f">{width * height * channels}{'H' if bits == 16 else 'B'}", raw))


def expected(image, content):
    """Bits, channels, samples."""
    pixels = image["size"][0] * image["size"][1] * image["size"][2]
    if image["data"] in PACKED:
        letter, shifts, most = PACKED[image["data"]]
        values = struct.unpack(f"<{pixels}{letter}", content)
        return 16, 3, [((v >> s & m) * 65535 + m // 2) // m for v in values for s, m in zip(shifts, most)]
    names, letter = CHANNELS[image["order"]], VALUES[image["data"]]
    values = struct.unpack(f"<{pixels * len(names)}{letter}", content)
    is_scaled = letter not in "BH"
    shown = "rgb" if "g" in names else names[0]
    if "a" in names[1:] or (names[0] == "a" and len(names) > 1):
        shown += "" if is_scaled else "a"
    samples = [values[p * len(names) + names.index(c)] if c in names else 0 for p in range(pixels) for c in shown]
    if is_scaled:
        real = [values[p * len(names) + names.index(c)] for p in range(pixels) for c in shown if c in names]
        low, high = min(real), max(real)
        samples = [int((s - low) / (high - low) * 65535 + 0.5) if shown[i % len(shown)] in names else 0
                   for i, s in enumerate(samples)]
    return (8 if letter == "B" else 16), len(shown), samples


def check(tool, trace, sequence, memory, image):
    common = [tool, "replay", trace, "--check", "none", "--at", str(sequence), "--dump", str(memory)]
    text = subprocess.run(common + ["--json", "--as", "u8", "--limit", "0"], check=True, capture_output=True, text=True)
    content = bytes(json.loads(text.stdout)["dump"]["values"])
    subprocess.run(common + ["--png", "picture.png"], check=True, capture_output=True)
    width, height, bits, channels, samples = decode("picture.png")
    assert (width, height) == (image["size"][0], image["size"][1] * image["size"][2]), f"{image}: {width} x {height}"
    wanted = expected(image, content)
    assert (bits, channels) == wanted[:2], f"{image}: {bits} bits, {channels} channels"
    assert samples == wanted[2], f"{image}: pixels differ"
    assert len(set(samples)) > 3, f"{image}: there is nothing to see"


FEW = {("2d", "bgra", "unorm_int8"), ("2d", "rgba", "half_float"), ("2d", "rgba", "signed_int32"),
       ("2d_array", "rgba", "unsigned_int8"), ("3d", "rgba", "unsigned_int8")}


def main(tool, trace, some="--few"):
    images, done = {}, set()
    for row in rows(tool, trace, "object"):
        if row["kind"] == "memory" and "image" in row["details"]:
            images[row["id"]] = (row["details"]["number"], row["details"]["image"])
    for row in rows(tool, trace, "command"):
        if row["kind"] != "copy" or row.get("object") not in images or "other" in row:
            continue
        memory, image = images[row["object"]]
        key = (image["type"], image["order"], image["data"])
        if key not in done and (key in FEW or some == "--all"):
            check(tool, trace, row["sequence"], memory, image)
            done.add(key)
    assert len(done) >= 3, f"only {len(done)} images"
    print(f"{len(done)} pictures")


main(*sys.argv[1:])
