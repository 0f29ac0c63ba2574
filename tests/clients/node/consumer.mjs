// sqs-consumer: a hundred messages, one of which fails the first time.
import { randomUUID } from "node:crypto";
import { CreateQueueCommand, GetQueueAttributesCommand, SQSClient, SendMessageBatchCommand } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";

const MESSAGES = 100;
const sqs = new SQSClient({
  endpoint: process.env.PENSTOCK_SQS_ENDPOINT,
  region: "us-east-1",
  maxAttempts: 1,
});
const { QueueUrl: queueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: `consumer-${randomUUID()}` }));
for (let first = 0; first < MESSAGES; first += 10) {
  const Entries = Array.from({ length: 10 }, (_, n) => ({ Id: `n${n}`, MessageBody: String(first + n) }));
  await sqs.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries }));
}

const runs = new Map();
const errors = [];
let failed = 0;
let processed = 0;
await new Promise((resolve) => {
  const consumer = Consumer.create({
    queueUrl,
    sqs,
    batchSize: 10,
    waitTimeSeconds: 20,
    visibilityTimeout: 30,
    heartbeatInterval: 10,
    terminateVisibilityTimeout: true,
    handleMessage: async (message) => {
      runs.set(message.Body, (runs.get(message.Body) ?? 0) + 1);
      if (message.Body === "42" && runs.get("42") === 1) {
        throw new Error("the first time always fails");
      }
      return message;
    },
  });
  consumer.on("processing_error", () => failed++);
  consumer.on("error", (error) => errors.push(String(error)));
  consumer.on("message_processed", () => {
    processed++;
  });
  // It may stop only once the last message is deleted; the poll that it is in is aborted.
  consumer.on("response_processed", () => {
    if (processed === MESSAGES) {
      consumer.stop({ abort: true });
    }
  });
  consumer.on("stopped", resolve);
  consumer.start();
});
const { Attributes } = await sqs.send(
  new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ["All"] }),
);
sqs.destroy();
console.log(
  JSON.stringify({
    distinct: runs.size,
    twice: runs.get("42"),
    processed,
    failed,
    errors,
    left: Number(Attributes.ApproximateNumberOfMessages) + Number(Attributes.ApproximateNumberOfMessagesNotVisible),
  }),
);
