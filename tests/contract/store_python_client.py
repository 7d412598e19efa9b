"""What Python's torch asks of the store at 127.0.0.1:PORT. usage: store_python_client.py PORT"""

import datetime
import sys

import torch.distributed as dist

SECONDS = datetime.timedelta(seconds=20)


def connect(port):
    return dist.TCPStore("127.0.0.1", port, is_master=False, timeout=SECONDS, wait_for_workers=False)


def expect(what, actual, wanted):
    if actual != wanted:
        sys.exit(f"{what}: {actual!r}, expected {wanted!r}")


def main():
    port = int(sys.argv[1])
    store, other = connect(port), connect(port)
    store.set("k", "v")
    expect("get", other.get("k"), b"v")
    expect("add", [store.add("n", 5), other.add("n", -7)], [5, -2])
    expect("compare_set", store.compare_set("k", "v", "w"), b"w")
    expect("check", [store.check(["k"]), store.check(["k", "absent"])], [True, False])
    expect("num_keys", store.num_keys(), 2)
    expect("delete_key", [store.delete_key("k"), store.delete_key("k")], [True, False])
    store.append("text", "ab")
    store.append("text", "cd")
    store.multi_set(["a", "b"], ["1", ""])
    expect("multi_get", store.multi_get(["b", "text", "a"]), [b"", b"abcd", b"1"])
    try:
        store.wait(["absent"], datetime.timedelta(milliseconds=20))
        sys.exit("wait: came back for a key that does not exist")
    except dist.DistStoreError:
        pass
    expect("after a timeout", store.get("text"), b"abcd")

    # A process group of one, the way workers join theirs.
    dist.init_process_group("gloo", store=dist.PrefixStore("group", other), rank=0, world_size=1)
    dist.barrier()
    dist.destroy_process_group()
    print("all as expected")


if __name__ == "__main__":
    main()
