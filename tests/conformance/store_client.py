"""A client of TCPStore's wire protocol on a bare socket."""
import socket
import struct

(VALIDATE, SET, COMPARE_SET, GET, ADD, CHECK, WAIT, COUNT_KEYS, DELETE, APPEND, MULTI_GET, MULTI_SET, CANCEL_WAIT, PING,
 QUEUE_PUSH, QUEUE_POP, QUEUE_LENGTH, LIST_KEYS, BARRIER) = range(19)
READY, NOT_READY = 0, 1
RELEASED, CANCELED = 0, 1
HANDSHAKE = struct.pack("<BI", VALIDATE, 0x3C85F7CE)
ANSWER_S = 10


class Closed(AssertionError):
    """The server has closed the connection."""


def number(value):
    return struct.pack("<q", value)


def data(value):
    """A counted value."""
    value = value.encode() if isinstance(value, str) else value
    return number(len(value)) + value


def name(key):
    """A key, with the slash that torch's client puts before it."""
    return data("/" + key)


class StoreClient:
    """One connection. A method sends a request and returns its answer if there is one."""

    def __init__(self, worker, handshake=HANDSHAKE):
        self.socket = socket.create_connection(address_of(worker), timeout=ANSWER_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(handshake)

    def close(self):
        self.socket.close()

    def send(self, *parts):
        """Bytes as they are; a number is a request's kind."""
        message = b"".join(bytes([part]) if isinstance(part, int) else part for part in parts)
        try:
            self.socket.sendall(message)
        except ConnectionError:
            raise Closed() from None

    def send_in_single_bytes(self, *parts):
        for byte in b"".join(parts):
            self.send(byte)

    def read(self, size):
        received = b""
        while len(received) < size:
            try:
                piece = self.socket.recv(size - len(received))
            except ConnectionError:
                piece = b""
            if not piece:
                raise Closed()
            received += piece
        return received

    def read_byte(self):
        return self.read(1)[0]

    def read_number(self):
        return struct.unpack("<q", self.read(8))[0]

    def read_data(self):
        return self.read(self.read_number())

    def hears_nothing(self, seconds=0.3):
        """Whether neither an answer nor the connection's end comes within this time."""
        self.socket.settimeout(seconds)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        except ConnectionError:
            pass
        finally:
            self.socket.settimeout(ANSWER_S)
        return False

    def ping(self, nonce=4711):
        self.send(PING, struct.pack("<I", nonce))
        assert self.read(4) == struct.pack("<I", nonce)

    def set(self, key, value):
        self.send(SET, name(key), data(value))

    def compare_set(self, key, expected, desired):
        self.send(COMPARE_SET, name(key), data(expected), data(desired))
        return self.read_data()

    def get(self, key):
        self.send(GET, name(key))
        return self.read_data()

    def add(self, key, amount):
        self.send(ADD, name(key), number(amount))
        return self.read_number()

    def check(self, *keys):
        self.send(CHECK, number(len(keys)), *map(name, keys))
        return self.read_byte()

    def begin_wait(self, *keys):
        self.send(WAIT, number(len(keys)), *map(name, keys))

    def cancel_wait(self):
        self.send(CANCEL_WAIT)
        return self.read_byte()

    def count_keys(self):
        self.send(COUNT_KEYS)
        return self.read_number()

    def delete(self, key):
        self.send(DELETE, name(key))
        return self.read_number()

    def append(self, key, value):
        self.send(APPEND, name(key), data(value))

    def multi_get(self, *keys):
        self.send(MULTI_GET, number(len(keys)), *map(name, keys))
        return [self.read_data() for _ in keys]

    def multi_set(self, values):
        self.send(MULTI_SET, number(len(values)), *(name(key) + data(value) for key, value in values.items()))

    def push(self, key, value):
        self.send(QUEUE_PUSH, name(key), data(value))

    def pop(self, key):
        """None where the queue is empty."""
        self.send(QUEUE_POP, name(key))
        return self.read_data() if self.read_number() > 0 else None

    def queue_length(self, key):
        self.send(QUEUE_LENGTH, name(key))
        return self.read_number()

    def list_keys(self):
        self.send(LIST_KEYS)
        return [self.read_data() for _ in range(self.read_number())]


def address_of(worker):
    """Where the store is that a worker was told of."""
    return worker.env["MASTER_ADDR"], int(worker.env["MASTER_PORT"])
