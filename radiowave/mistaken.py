# SPDX-License-Identifier: Apache-2.0
"""What is passed for a code object by mistake: its name and the way to a code object, from its first bytes.

Reads no further than a few hundred bytes and refuses nothing; `code_object.py` does. Bundles are not mistakes:
`bundle.py` knows them. Sources of the first bytes: LLVM, `llvm/lib/BinaryFormat/Magic.cpp`; SPIR-V specification 2.3.
"""

from __future__ import annotations

_LINK = "compile to a linked code object: clang --offload-device-only --no-gpu-bundle-output"
_TEXT = "compile it first; LLVM IR: radiowave compile FILE.ll --target gfx1201 -o FILE.co"

_FIRST_BYTES: dict[bytes, str] = {
    b"BC\xc0\xde": "LLVM bitcode, as -emit-llvm and -fgpu-rdc write it",
    b"!<arch>\n": "an archive",
    b"\x10\xff\x10\xad": "an offload binary of clang-offload-packager",
    b"\x03\x02#\x07": "SPIR-V",
}
_READ_BYTES = 512  # enough to tell text from anything else
_SHOWN = 60  # characters of a text's first line


def mistaken_for_code(data: bytes) -> tuple[str, str] | None:
    """What the bytes are and what to do, or None for what could be a code object.

    >>> mistaken_for_code(b"; ModuleID = 'saxpy'\\ndefine void @f()")[0]
    'this is text: "; ModuleID = \\'saxpy\\'"'
    """
    for magic, name in _FIRST_BYTES.items():
        if data.startswith(magic):
            return name, _LINK
    text = data[:_READ_BYTES].decode("utf-8", "ignore")
    if len(text.strip()) < 4 or not all(letter.isprintable() or letter.isspace() for letter in text):
        return None
    # What is left of a letter that the cut went through is ignored; any other byte that is no UTF-8 is no text.
    if len(text.encode()) < len(data[:_READ_BYTES]) - 3:
        return None
    return f'this is text: "{text.strip().splitlines()[0][:_SHOWN]}"', _TEXT
