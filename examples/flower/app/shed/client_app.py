"""What a SuperNode runs when it is asked to train."""

from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from shed import task

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train the model in the message on the data of this node."""
    arrays, config = message.content["arrays"], message.content["config"]
    images, labels = task.load(context.node_config["data"])
    weights, loss = task.train(
        [array.numpy() for array in arrays.values()],
        images,
        labels,
        epochs=int(context.run_config["local-epochs"]),
        batch=int(config.get("batch_size", 32)),
        rate=float(context.run_config["lr"]),
        seed=int(config["server-round"]),
    )
    content = RecordDict({
        "arrays": ArrayRecord({name: Array(w) for name, w in zip(arrays, weights)}),
        "metrics": MetricRecord({"num-examples": len(images), "train_loss": loss}),
    })
    return Message(content=content, reply_to=message)
