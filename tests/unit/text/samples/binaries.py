"""Make small files of binary formats: a class of Java, a module of WebAssembly, an HDF5 file, a capture of
packets and a journal of systemd."""

from __future__ import annotations

import struct


def class_of(name: str) -> bytes:
    """Return an interface of Java that has this name."""

    def utf8(text: str) -> bytes:
        return b"\1" + struct.pack(">H", len(text)) + text.encode()

    constants = b"\7\0\2" + utf8(name) + b"\7\0\4" + utf8("java/lang/Object")
    # interface, abstract; itself, its parent; neither interfaces nor fields, methods and attributes
    rest = struct.pack(">HHH", 0x0600, 1, 3) + bytes(8)
    return b"\xca\xfe\xba\xbe\0\0\0\x34" + struct.pack(">H", 5) + constants + rest


def wasm_of(name: str) -> bytes:
    """Return a module of WebAssembly that exports an empty memory by this name."""
    export = b"\1" + bytes([len(name)]) + name.encode() + b"\2\0"
    return b"\0asm\1\0\0\0" + b"\5\3\1\0\0" + b"\7" + bytes([len(export)]) + export


def hdf5_of(name: str) -> bytes:
    """Return an HDF5 file whose root has one soft link, which has this name and leads to itself."""

    def message(kind: int, data: bytes) -> bytes:
        data += bytes(-len(data) % 8)
        return struct.pack("<HHB3x", kind, len(data), 0) + data

    nowhere, begin, path = 2**64 - 1, 96, b"/" + name.encode()
    info = message(2, struct.pack("<BBQQ", 0, 0, nowhere, nowhere))
    link = struct.pack("<BBBB", 1, 8, 1, len(name)) + path[1:] + struct.pack("<H", len(path)) + path
    messages = info + message(6, link)
    group = struct.pack("<BBHLL4x", 1, 0, 2, 1, len(messages)) + messages
    head = struct.pack("<BBBBBBBBHHL", 0, 0, 0, 0, 0, 8, 8, 0, 4, 16, 0)
    head += struct.pack("<QQQQ", 0, nowhere, begin + len(group), nowhere)  # base, free space, end, driver
    root = struct.pack("<QQLL16x", 0, begin, 0, 0)
    return b"\x89HDF\r\n\x1a\n" + head + root + group


def pcap_of(name: str) -> bytes:
    """Return a capture of one packet of IPv4, which asks a server of DNS for this name."""
    question = bytes([len(name)]) + name.encode() + b"\0" + struct.pack(">HH", 1, 1)
    asked = struct.pack(">HHHHHH", 1, 0x100, 1, 0, 0, 0) + question
    datagram = struct.pack(">HHHH", 4000, 53, 8 + len(asked), 0) + asked
    address = (127, 0, 0, 1)
    packet = struct.pack(">BBHHHBBH4B4B", 0x45, 0, 20 + len(datagram), 0, 0, 64, 17, 0, *address, *address)
    packet += datagram
    raw_ip = 101
    head = struct.pack("<LHHLLLL", 0xA1B2C3D4, 2, 4, 0, 0, 65535, raw_ip)
    return head + struct.pack("<LLLL", 0, 0, len(packet), len(packet)) + packet


DATA, FIELD, ENTRY, DATA_TABLE, FIELD_TABLE, ENTRY_ARRAY = 1, 2, 3, 4, 5, 6


def journal_of(message: str) -> bytes:
    """Return a journal of systemd, as version 187 wrote it, with one entry that has this message: a header,
    two hash tables of one bucket, a field, its value, the entry, and the list of entries."""
    now, identity, head_bytes = 1_700_000_000_000_000, bytes(range(1, 17)), 208
    name, value = b"MESSAGE", b"MESSAGE=" + message.encode()
    name_hash, value_hash = jenkins_hash(name), jenkins_hash(value)
    sizes = (32, 32, 40 + len(name), 64 + len(value), 80, 32)
    places = [head_bytes]
    for size in sizes:
        places.append(places[-1] + size + -size % 8)
    *_, field, data, entry, array, end = places
    entry_fields = struct.pack("<QQQ16sQQQ", 1, now, 1, identity, value_hash, data, value_hash)
    bodies = [
        (DATA_TABLE, struct.pack("<QQ", data, data)),
        (FIELD_TABLE, struct.pack("<QQ", field, field)),
        (FIELD, struct.pack("<QQQ", name_hash, 0, data) + name),
        (DATA, struct.pack("<QQQQQQ", value_hash, 0, 0, entry, 0, 1) + value),
        (ENTRY, entry_fields),
        (ENTRY_ARRAY, struct.pack("<QQ", 0, entry)),
    ]
    head = b"LPKSHHRH" + bytes(16) + identity * 4
    tables = (places[0] + 16, 16, places[1] + 16, 16)
    counts = (array, len(bodies), 1, 1, 1, array, now, now, 1)
    head += struct.pack("<15Q", head_bytes, end - head_bytes, *tables, *counts)
    made = [struct.pack("<B7xQ", kind, 16 + len(body)) + body for kind, body in bodies]
    return head + b"".join(each + bytes(-len(each) % 8) for each in made)


def jenkins_hash(data: bytes) -> int:
    """Return the hash of lookup3 by Bob Jenkins that journals have of their fields."""
    a = b = c = 0xDEADBEEF + len(data) & 0xFFFFFFFF

    def rotated(number: int, by: int) -> int:
        return (number << by | number >> 32 - by) & 0xFFFFFFFF

    parts = [data[at : at + 12].ljust(12, b"\0") for at in range(0, len(data), 12)]
    for number, part in enumerate(parts, 1):
        a, b, c = (x + y & 0xFFFFFFFF for x, y in zip((a, b, c), struct.unpack("<LLL", part), strict=True))
        if number < len(parts):
            for by in (4, 6, 8, 16, 19, 4):
                a, b, c = b, c + b & 0xFFFFFFFF, (a - c & 0xFFFFFFFF) ^ rotated(c, by)
    for by in (14, 11, 25, 16, 4, 14, 24):
        a, b, c = b, (c ^ b) - rotated(b, by) & 0xFFFFFFFF, a
    return b << 32 | a
