"""ctypes binding to the terminal engine, libghostty-vt: the calls that `Screen` needs, and nothing else.

The library comes inside the `pyghostty` wheel. That package is located but never imported: its own cffi wrapper
would cost 160 ms and 10 MB at start-up, where loading the library alone costs a few milliseconds.

The engine is not thread-safe for one terminal; different terminals may be used from different threads. ctypes
releases the interpreter lock during calls.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import itertools
import os.path
import sys
import weakref
from ctypes import POINTER, byref, c_bool, c_int, c_size_t, c_uint8, c_uint16, c_uint32, c_void_p

PACKAGE = "pyghostty"
LIBRARY = "libghostty-vt.dylib" if sys.platform == "darwin" else "libghostty-vt.so"

# Answers to size queries (CSI 14t, 16t) need a cell in pixels. Nobody draws here, so it is a common 8x16 font.
CELL_WIDTH_PX = 8
CELL_HEIGHT_PX = 16

# Primary attributes: VT220 level with colour. Secondary: 41 is what xterm calls itself; programs (vim, emacs)
# unlock SGR mouse and modifyOtherKeys from patch level 277 on, both of which the engine has. 354 is widespread.
DA_CONFORMANCE = 62
DA_FEATURES = (22,)
DA_DEVICE_TYPE = 41
DA_FIRMWARE = 354

# GhosttyResult, GhosttyTerminalOption, GhosttyTerminalData and GhosttySnapshotDecoderOption values.
OPT_USERDATA = 0
OPT_WRITE_PTY = 1
OPT_SIZE = 6
OPT_COLOR_SCHEME = 7
OPT_DEVICE_ATTRIBUTES = 8
OPT_COLOR_FOREGROUND = 11
OPT_COLOR_BACKGROUND = 12
OPT_COLOR_CURSOR = 13
OPT_KITTY_IMAGE_STORAGE_LIMIT = 15
OPT_GLYPH_PROTOCOL = 24
OPT_SCROLLBACK_MAX_BYTES = 27
OPT_SCROLLBACK_MAX_LINES = 28
OPT_CONTINUATION_MAX_BYTES = 31
OPT_MODE_DEFAULT = 33
OPT_MODE = 34
OPT_TERMINFO_NAME = 37
DATA_COLS = 1
DATA_ROWS = 2
DATA_CURSOR_X = 3
DATA_CURSOR_Y = 4
DATA_ACTIVE_SCREEN = 6
DATA_CURSOR_VISIBLE = 7
DATA_TITLE = 12
DATA_MODE = 37
DATA_VT_GROUND = 38
DECODER_MAX_CONTINUATION_BYTES = 0
DECODER_RETAIN_CONTINUATION = 1
COLOR_SCHEME_DARK = 1
COMPRESS_FULL = 1


class TerminalEngineMissing(Exception):
    """The terminal engine cannot be loaded on this machine; the message says what to do."""


class EngineError(Exception):
    """The engine refused a call."""


class _String(ctypes.Structure):
    _fields_ = [("ptr", c_void_p), ("len", c_size_t)]


class _Mode(ctypes.Structure):
    _fields_ = [("mode", c_uint16), ("value", c_bool)]


class _PrimaryAttributes(ctypes.Structure):
    _fields_ = [("conformance", c_uint16), ("features", c_uint16 * 64), ("count", c_size_t)]


class _SecondaryAttributes(ctypes.Structure):
    _fields_ = [("device_type", c_uint16), ("firmware", c_uint16), ("rom", c_uint16)]


class _DeviceAttributes(ctypes.Structure):
    _fields_ = [("primary", _PrimaryAttributes), ("secondary", _SecondaryAttributes), ("unit_id", c_uint32)]


class _Size(ctypes.Structure):
    _fields_ = [("rows", c_uint16), ("cols", c_uint16), ("cell_width", c_uint32), ("cell_height", c_uint32)]


_WritePtyFn = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_size_t)
_SizeFn = ctypes.CFUNCTYPE(c_bool, c_void_p, c_void_p, POINTER(_Size))
_ColorSchemeFn = ctypes.CFUNCTYPE(c_bool, c_void_p, c_void_p, POINTER(c_int))
_DeviceAttributesFn = ctypes.CFUNCTYPE(c_bool, c_void_p, c_void_p, POINTER(_DeviceAttributes))


def find_library() -> str:
    """The engine's library file; raises `TerminalEngineMissing` where its wheel is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = os.path.join(folder, "_lib", LIBRARY)
        if os.path.exists(path):
            return path
    raise TerminalEngineMissing(
        f"the terminal engine is missing: `pip install {PACKAGE}` (there are wheels for glibc Linux and macOS)"
    )


@functools.cache
def load() -> ctypes.CDLL:
    """The loaded library with its signatures declared; loaded once per process, on first use."""
    path = find_library()
    try:
        library = ctypes.CDLL(path)
        _declare(library)
    except (OSError, AttributeError) as error:
        raise TerminalEngineMissing(
            f"the terminal engine {path} cannot be used here ({error}): reinstall {PACKAGE}"
        ) from error
    return library


def _declare(lib: ctypes.CDLL) -> None:
    handle, out = c_void_p, c_void_p
    signatures: dict[str, tuple[object, list[object]]] = {
        "ghostty_terminal_new": (c_int, [c_void_p, POINTER(c_void_p), c_uint16, c_uint16]),
        "ghostty_terminal_free": (None, [handle]),
        "ghostty_terminal_resize": (c_int, [handle, c_uint16, c_uint16, c_uint32, c_uint32]),
        "ghostty_terminal_set": (c_int, [handle, c_int, c_void_p]),
        "ghostty_terminal_get": (c_int, [handle, c_int, out]),
        "ghostty_terminal_vt_write": (None, [handle, ctypes.c_char_p, c_size_t]),
        "ghostty_terminal_compress": (c_int, [handle, c_int, POINTER(c_int)]),
        "ghostty_terminal_continuation_alloc": (
            c_int,
            [handle, c_void_p, POINTER(c_void_p), POINTER(c_size_t)],
        ),
        "ghostty_snapshot_encode_alloc": (c_int, [handle, c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
        "ghostty_snapshot_decoder_new_buf": (
            c_int,
            [c_void_p, POINTER(c_void_p), ctypes.c_char_p, c_size_t],
        ),
        "ghostty_snapshot_decoder_set": (c_int, [handle, c_int, c_void_p]),
        "ghostty_snapshot_decoder_decode": (c_int, [handle, POINTER(c_void_p)]),
        "ghostty_snapshot_decoder_free": (None, [handle]),
        "ghostty_free": (None, [c_void_p, c_void_p, c_size_t]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments


# Callbacks are shared by all terminals: one ctypes closure each instead of four per screen. The engine hands back
# the terminal's number as user data, which leads to its `GhosttyTerminal` here.
_terminals: weakref.WeakValueDictionary[int, GhosttyTerminal] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def _on_write_pty(_handle: int, number: int, data: int, length: int) -> None:
    _terminals[number].replies += ctypes.string_at(data, length)


def _on_size(_handle: int, number: int, out: ctypes._Pointer[_Size]) -> bool:
    size = out.contents
    size.cols, size.rows = _terminals[number].size
    size.cell_width, size.cell_height = CELL_WIDTH_PX, CELL_HEIGHT_PX
    return True


def _on_color_scheme(_handle: int, _number: int, out: ctypes._Pointer[c_int]) -> bool:
    out.contents.value = COLOR_SCHEME_DARK
    return True


def _on_device_attributes(_handle: int, _number: int, out: ctypes._Pointer[_DeviceAttributes]) -> bool:
    attributes = out.contents
    attributes.primary.conformance = DA_CONFORMANCE
    attributes.primary.count = len(DA_FEATURES)
    for index, feature in enumerate(DA_FEATURES):
        attributes.primary.features[index] = feature
    attributes.secondary.device_type = DA_DEVICE_TYPE
    attributes.secondary.firmware = DA_FIRMWARE
    attributes.secondary.rom = 0
    attributes.unit_id = 0
    return True


_CALLBACKS = (
    (OPT_WRITE_PTY, _WritePtyFn(_on_write_pty)),
    (OPT_SIZE, _SizeFn(_on_size)),
    (OPT_COLOR_SCHEME, _ColorSchemeFn(_on_color_scheme)),
    (OPT_DEVICE_ATTRIBUTES, _DeviceAttributesFn(_on_device_attributes)),
)


class GhosttyTerminal:
    """One engine terminal: owns the native handle and collects what the engine replies to the program."""

    def __init__(self, handle: int, cols: int, rows: int) -> None:
        self._lib = load()
        self._handle: int | None = handle
        self.size = (cols, rows)
        self.replies = bytearray()
        self._number = next(_numbers)
        _terminals[self._number] = self
        self.set(OPT_USERDATA, c_void_p(self._number))
        for option, callback in _CALLBACKS:
            self.set(option, ctypes.cast(callback, c_void_p))

    @classmethod
    def new(cls, cols: int, rows: int) -> GhosttyTerminal:
        handle = c_void_p()
        _check(load().ghostty_terminal_new(None, byref(handle), cols, rows), "create a terminal")
        return cls(handle.value or 0, cols, rows)

    @classmethod
    def decode(cls, snapshot: bytes, cols: int, rows: int, continuation_max: int) -> GhosttyTerminal:
        """The terminal whose state `encode` wrote; raises `EngineError` for anything else."""
        lib = load()
        decoder, handle = c_void_p(), c_void_p()
        status = lib.ghostty_snapshot_decoder_new_buf(None, byref(decoder), snapshot, len(snapshot))
        _check(status, "open a snapshot")
        options = (
            (DECODER_MAX_CONTINUATION_BYTES, c_size_t(continuation_max)),
            (DECODER_RETAIN_CONTINUATION, c_bool(1)),
        )
        try:
            for option, value in options:
                _check(lib.ghostty_snapshot_decoder_set(decoder, option, byref(value)), "set up a decoder")
            _check(lib.ghostty_snapshot_decoder_decode(decoder, byref(handle)), "decode a snapshot")
        finally:
            lib.ghostty_snapshot_decoder_free(decoder)
        return cls(handle.value or 0, cols, rows)

    @property
    def handle(self) -> int:
        if self._handle is None:
            raise ValueError("this screen is closed")
        return self._handle

    def close(self) -> None:
        if self._handle is not None:
            self._lib.ghostty_terminal_free(self._handle)
            self._handle = None

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    def write(self, data: bytes) -> None:
        self._lib.ghostty_terminal_vt_write(self.handle, data, len(data))

    def take_replies(self) -> bytes:
        replies = bytes(self.replies)
        self.replies.clear()
        return replies

    def resize(self, cols: int, rows: int) -> None:
        self.size = (cols, rows)
        status = self._lib.ghostty_terminal_resize(self.handle, cols, rows, CELL_WIDTH_PX, CELL_HEIGHT_PX)
        _check(status, "resize")

    def set(self, option: int, value: object) -> None:
        """Set one option; `value` is a ctypes pointer, or a callback or user data itself."""
        _check(self._lib.ghostty_terminal_set(self.handle, option, value), f"set option {option}")

    def set_count(self, option: int, value: int) -> None:
        self.set(option, byref(c_size_t(value)))

    def set_flag(self, option: int, value: bool) -> None:
        self.set(option, byref(c_bool(value)))

    def set_color(self, option: int, rgb: tuple[int, int, int]) -> None:
        self.set(option, byref((c_uint8 * 3)(*rgb)))

    def set_string(self, option: int, text: bytes) -> None:
        buffer = ctypes.create_string_buffer(text)
        self.set(option, byref(_String(ctypes.addressof(buffer), len(text))))

    def set_mode(self, option: int, mode: int, value: bool) -> None:
        """Set a DEC private mode (OPT_MODE) or its default (OPT_MODE_DEFAULT)."""
        self.set(option, byref(_Mode(mode, value)))

    def get_number(self, data: int) -> int:
        value = c_int(0) if data == DATA_ACTIVE_SCREEN else c_uint16(0)  # an enum; the others are counts
        _check(self._lib.ghostty_terminal_get(self.handle, data, byref(value)), f"read {data}")
        return value.value

    def get_flag(self, data: int) -> bool:
        value = c_bool()
        _check(self._lib.ghostty_terminal_get(self.handle, data, byref(value)), f"read {data}")
        return value.value

    def get_mode(self, mode: int) -> bool:
        """A DEC private mode."""
        value = _Mode(mode, 0)
        _check(self._lib.ghostty_terminal_get(self.handle, DATA_MODE, byref(value)), f"read mode {mode}")
        return bool(value.value)

    def get_string(self, data: int) -> bytes:
        value = _String()
        _check(self._lib.ghostty_terminal_get(self.handle, data, byref(value)), f"read {data}")
        return ctypes.string_at(value.ptr, value.len) if value.ptr else b""

    def encode(self) -> bytes:
        """The whole state in the engine's snapshot format: both screens, history, modes, unfinished input."""
        return self._take_buffer(self._lib.ghostty_snapshot_encode_alloc, "encode a snapshot")

    def unfinished(self) -> bytes:
        """The bytes of the escape sequence or character that is still open."""
        return self._take_buffer(self._lib.ghostty_terminal_continuation_alloc, "read unfinished input")

    def compress(self) -> None:
        result = c_int()
        _check(self._lib.ghostty_terminal_compress(self.handle, COMPRESS_FULL, byref(result)), "compress")

    def _take_buffer(self, call: ctypes._NamedFuncPointer, what: str) -> bytes:
        pointer, length = c_void_p(), c_size_t()
        _check(call(self.handle, None, byref(pointer), byref(length)), what)
        try:
            return ctypes.string_at(pointer, length.value) if pointer.value else b""
        finally:
            self._lib.ghostty_free(None, pointer, length)


def _check(result: int, what: str) -> None:
    if result != 0:
        raise EngineError(f"the terminal engine could not {what} (code {result})")
