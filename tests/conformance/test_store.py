"""The store at MASTER_ADDR:MASTER_PORT, to which the TCPStore clients in the workers' torch speak."""
import socket
import struct
import threading

import pytest

from harness import LOOPBACK, better
from store_client import (ADD, BARRIER, CANCELED, CHECK, GET, HANDSHAKE, MULTI_GET, NOT_READY, PING, READY, RELEASED,
                          SET, Closed, StoreClient, address_of, data, name, number)


@pytest.fixture(scope="module")
def worker(module_bench):
    """The waiting worker of a job whose launcher serves the store."""
    return module_bench.start("--standalone", f"--local-addr={LOOPBACK}", code="wait()").wait_for_workers(1)[0]


@pytest.fixture
def connect(worker):
    """Makes connections that are closed at the end of the case."""
    clients = []

    def make(**options):
        clients.append(StoreClient(worker, **options))
        return clients[-1]
    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(connect):
    return connect()


@pytest.fixture
def key(request):
    """A key of the case's own."""
    return request.node.name


# Messages

def test_handshake_is_silent_and_ping_returns_its_nonce(connect):
    client = connect()
    assert client.hears_nothing()
    for nonce in (0, 0xFFFFFFFF):
        client.ping(nonce)


def test_requests_in_one_segment_are_answered_in_their_order(client, key):
    client.send(SET, name(key), data("7"), ADD, name(key), number(3), PING, struct.pack("<I", 99), GET, name(key))
    assert (client.read_number(), client.read(4), client.read_data()) == (10, struct.pack("<I", 99), b"10")


def test_request_may_come_byte_by_byte(client, key):
    client.send_in_single_bytes(bytes([SET]) + name(key) + data("value") + bytes([GET]) + name(key))
    assert client.read_data() == b"value"


def test_thousands_of_requests_need_no_answer_between_them(client, key):
    for index in range(5000):
        client.set(key, str(index))
    assert client.get(key) == b"4999"
    client.send(CHECK, number(0))
    assert client.read_byte() == READY


@better
def test_handshake_may_come_byte_by_byte(connect):
    client = connect(handshake=b"")
    for byte in HANDSHAKE:
        client.send(byte)
        assert client.hears_nothing(0.02)
    client.ping()


@better
def test_wrong_magic_number_closes_the_connection(connect):
    client = connect(handshake=HANDSHAKE[:-1] + b"\xff")
    assert not client.hears_nothing(2)


@pytest.mark.parametrize("message", [
    b"\xee",
    bytes([MULTI_GET]) + number(200_000),
    bytes([GET]) + number(1 << 60),
    bytes([SET]) + name("k" * 9000) + data("v"),
], ids=["unknown request", "200,000 keys", "length of 2^60", "key of 9,000 bytes"])
def test_impossible_request_closes_that_connection_only(client, connect, message):
    other = connect()
    client.send(message)
    with pytest.raises(Closed):
        client.ping()
    other.ping()
    connect().ping()


def test_client_of_another_protocol_does_no_harm(worker, connect):
    with socket.create_connection(address_of(worker), timeout=5) as browser:
        browser.sendall(b"GET / HTTP/1.1\r\nHost: store\r\n\r\n")
    connect().ping()


# Values

@pytest.mark.parametrize("value", [b"", b"\0\xff\n", b"x" * 3_000_001, b"z" * ((8 << 20) - 1024)],
                         ids=["empty", "binary", "3 MB", "almost 8 MiB"])
def test_value_is_any_bytes_and_outlives_its_connection(client, connect, key, value):
    writer = connect()
    writer.set(key, "replaced")
    writer.set(key, value)
    writer.ping()
    writer.close()
    assert client.get(key) == value


def test_absent_key_is_an_empty_value(client, key):
    assert client.get(key) == b""


@pytest.mark.parametrize("first, amounts, last", [
    (None, [5, -7, 0], "-2"), ("40", [2], "42"), (None, [2**40, 2**40], str(2**41)), (None, [1] * 50, "50")])
def test_add_counts_in_decimal_text_of_64_bits(client, key, first, amounts, last):
    if first is not None:
        client.set(key, first)
    results = [client.add(key, amount) for amount in amounts]
    assert results == [int(first or 0) + sum(amounts[:count + 1]) for count in range(len(amounts))]
    assert client.get(key) == last.encode()


def test_append_makes_lengthens_and_continues_a_number(client, key):
    client.append(key, "1")
    client.append(key, "2")
    assert client.get(key) == b"12"
    assert client.add(key, 1) == 13
    client.append(key, "0")
    assert client.add(key, 1) == 131


def test_delete_counts_what_it_removes(client, key):
    client.set(key, "v")
    assert (client.delete(key), client.delete(key), client.check(key)) == (1, 0, NOT_READY)


def test_check_wants_all_keys(client, key):
    client.set(key, "")
    assert (client.check(key), client.check(key, key + " absent")) == (READY, NOT_READY)


def test_each_new_key_counts_once(client, key):
    before = client.count_keys()
    for ending in "121":
        client.set(key + ending, "v")
    assert client.count_keys() == before + 2


def test_several_keys_at_once_in_the_order_of_the_request(client, key):
    client.multi_set({key + "a": "1", key + "b": "2", key + "c": ""})
    assert client.multi_get(key + "c", key + "a", key + "b") == [b"", b"1", b"2"]


def test_ten_thousand_keys_at_once(client, key):
    values = {f"{key}{index}": str(index) for index in range(10_000)}
    client.multi_set(values)
    assert client.check(*values) == READY
    assert client.multi_get(*list(values)[-2:]) == [b"9998", b"9999"]


@pytest.mark.parametrize("stored, expected, answer, kept", [
    (None, "", b"new", b"new"), (None, "old", b"old", b""), ("old", "old", b"new", b"new"),
    ("old", "other", b"old", b"old"), ("old", "", b"old", b"old")])
def test_compare_set_replaces_only_the_expected_value(client, key, stored, expected, answer, kept):
    if stored is not None:
        client.set(key, stored)
    assert (client.compare_set(key, expected, "new"), client.get(key)) == (answer, kept)


def test_keys_are_listed_as_they_were_sent(client, key):
    client.set(key, "v")
    assert b"/" + key.encode() in client.list_keys()


# Waiting

def test_wait_for_keys_that_are_there_ends_at_once(client, key):
    client.set(key, "v")
    client.begin_wait(key)
    assert client.read_byte() == RELEASED


@pytest.mark.parametrize("write", [
    lambda other, key: other.set(key, "v"), lambda other, key: other.add(key, 1),
    lambda other, key: other.append(key, "v"), lambda other, key: other.multi_set({key: "v"}),
    lambda other, key: other.compare_set(key, "", "v")],
    ids=["set", "add", "append", "multi_set", "compare_set"])
def test_every_write_releases_all_that_wait(connect, key, write):
    waiting = [connect() for _ in range(3)]
    for client in waiting:
        client.begin_wait(key)
    assert waiting[0].hears_nothing()
    write(connect(), key)
    assert [client.read_byte() for client in waiting] == [RELEASED] * 3


@better
def test_compare_set_that_stores_nothing_releases_nobody(client, connect, key):
    client.begin_wait(key)
    connect().compare_set(key, "something", "v")
    assert client.hears_nothing()


def test_wait_for_two_keys_ends_with_the_last_one_and_can_be_repeated(client, connect, key):
    other = connect()
    for turn in ("first", "second"):
        client.begin_wait(key + turn + "1", key + turn + "2")
        other.set(key + turn + "1", "v")
        assert client.hears_nothing()
        other.set(key + turn + "2", "v")
        assert client.read_byte() == RELEASED


def test_canceled_wait_is_answered_and_forgotten(client, connect, key):
    client.begin_wait(key)
    assert client.cancel_wait() == CANCELED
    connect().set(key, "v")
    assert client.hears_nothing()
    assert client.get(key) == b"v"


def test_cancel_without_a_wait_is_answered(client):
    assert client.cancel_wait() == CANCELED


def test_waiting_connection_may_break(client, connect, key):
    lost = connect()
    lost.begin_wait(key)
    lost.close()
    client.set(key, "v")
    assert client.get(key) == b"v"


@pytest.mark.since("2.12")
def test_barrier_holds_until_all_have_come(client, connect, key):
    client.send(BARRIER, name(key), number(2))
    assert client.hears_nothing()
    other = connect()
    other.send(BARRIER, name(key), number(2))
    assert (client.read_byte(), other.read_byte()) == (RELEASED, RELEASED)


# Queues

def test_wait_for_a_queue_ends_with_its_first_value(client, connect, key):
    client.begin_wait(key)
    assert client.hears_nothing()
    connect().push(key, "v")
    assert (client.read_byte(), client.pop(key)) == (RELEASED, b"v")


def test_queue_keeps_the_order(client, key):
    for value in ("a", "", "c"):
        client.push(key, value)
    assert client.queue_length(key) == 3
    assert [client.pop(key) for _ in range(4)] == [b"a", b"", b"c", None]


def test_queue_is_no_key(client, key):
    before = client.count_keys()
    client.push(key, "queued")
    assert (client.count_keys(), client.delete(key), client.queue_length(key)) == (before, 0, 1)
    client.set(key, "stored")
    assert (client.get(key), client.pop(key)) == (b"stored", b"queued")


# Load

def test_additions_of_many_connections_are_all_counted(connect, key):
    def add_many(client):
        for _ in range(500):
            client.add(key, 1)
    threads = [threading.Thread(target=add_many, args=[connect()]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert connect().get(key) == b"4000"


def test_connection_in_the_middle_of_a_request_holds_up_nobody(client, connect, key):
    connect().send(bytes([SET]) + name(key)[:5])
    client.set(key, "v")
    assert client.get(key) == b"v"


def test_many_connections_side_by_side(connect, key):
    clients = [connect() for _ in range(120)]
    assert [client.add(key, 1) for client in clients] == list(range(1, 121))


@better
def test_restart_has_an_empty_store(bench):
    job = bench.start("--standalone", f"--local-addr={LOOPBACK}", "--max-restarts=1",
                      code="wait('fail') if attempt == 0 else wait('end')\nsys.exit(attempt == 0)")
    StoreClient(job.wait_for_workers(1)[0]).set("left over", "1")
    second = job.let("fail").wait_for_workers(2)[1]
    assert StoreClient(second).check("left over") == NOT_READY
