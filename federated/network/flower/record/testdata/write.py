"""Writes the objects of two replies with Flower itself: one of a new-style app, one of a NumPyClient (flwr 1.41)."""

import json
import pathlib
import sys

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree

from flwr.supercore.task_identity import TaskIdentity

TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 5, 99, 7
here = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)


def tree(node):
    return [node.object_id, [tree(child) for child in node.children]]


def write(name, message):
    objects = {key: value.deflate().hex() for key, value in get_all_nested_objects(message).items()}
    document = {"tree": tree(get_object_tree(message)), "objects": objects}
    (here / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")


def ask():
    message = Message(RecordDict(), dst_node_id=7, message_type="train", group_id="3")
    message.metadata.__dict__["_message_id"] = "ab" * 32
    message.metadata.__dict__["_created_at"] = 1.5e9
    message.metadata.__dict__["_ttl"] = 1e9
    message.metadata.__dict__["_run_id"] = 99
    message.metadata.__dict__["_src_node_id"] = 1
    return message


arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(2, np.float32), np.zeros(2, np.float32)]
named = ArrayRecord({name: Array(a) for name, a in zip("abc", arrays)})
write("records", Message(RecordDict({
    "arrays": named,
    "metrics": MetricRecord({"num-examples": 40, "train_loss": 0.25, "many": [1, 2]}),
}), reply_to=ask()))
write("numpy", Message(RecordDict({
    "fitres.parameters": ArrayRecord(arrays),
    "fitres.num_examples": MetricRecord({"num_examples": 41}),
    "fitres.metrics": ConfigRecord({"loss": 0.5, "site": "north", "fine": True, "bytes": b"x"}),
    "fitres.status": ConfigRecord({"code": 0, "message": "Success"}),
}), reply_to=ask()))
write("error", Message(Error(2, "it broke"), reply_to=ask()))
