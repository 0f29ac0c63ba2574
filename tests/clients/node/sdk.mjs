// The JavaScript SDK (v3): every kind of call, with the checksums that the SDK itself verifies.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import {
  ChangeMessageVisibilityBatchCommand,
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  DeleteMessageCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListQueueTagsCommand,
  ListQueuesCommand,
  PurgeQueueCommand,
  QueueDoesNotExist,
  ReceiptHandleIsInvalid,
  ReceiveMessageCommand,
  SQSClient,
  SendMessageBatchCommand,
  SendMessageCommand,
  SetQueueAttributesCommand,
  TagQueueCommand,
  paginateListQueues,
} from "@aws-sdk/client-sqs";

const client = new SQSClient({
  endpoint: process.env.PENSTOCK_SQS_ENDPOINT,
  region: "us-east-1",
  maxAttempts: 1,
});
const call = (Command, input) => client.send(new Command(input));

const QueueName = `node-${randomUUID()}`;
const { QueueUrl } = await call(CreateQueueCommand, {
  QueueName,
  Attributes: { VisibilityTimeout: "60" },
  tags: { from: "node" },
});
assert.equal((await call(GetQueueUrlCommand, { QueueName })).QueueUrl, QueueUrl);
assert.deepEqual((await call(ListQueuesCommand, { QueueNamePrefix: QueueName })).QueueUrls, [QueueUrl]);

// One message, with an attribute of every type.
const body = 'héllo <&> "wörld"\r\n\t🍵';
const MessageAttributes = {
  text: { DataType: "String", StringValue: "grüße" },
  number: { DataType: "Number.int", StringValue: "42" },
  binary: { DataType: "Binary", BinaryValue: Uint8Array.from([0, 1, 2, 254, 255]) },
};
const sent = await call(SendMessageCommand, { QueueUrl, MessageBody: body, MessageAttributes });
const { Messages } = await call(ReceiveMessageCommand, {
  QueueUrl,
  WaitTimeSeconds: 5,
  MessageAttributeNames: ["All"],
  MessageSystemAttributeNames: ["All"],
});
assert.equal(Messages.length, 1);
const [message] = Messages;
assert.equal(message.MessageId, sent.MessageId);
assert.equal(message.Body, body);
assert.equal(message.MD5OfMessageAttributes, sent.MD5OfMessageAttributes);
assert.equal(message.MessageAttributes.text.StringValue, "grüße");
assert.deepEqual([...message.MessageAttributes.binary.BinaryValue], [0, 1, 2, 254, 255]);
assert.equal(message.Attributes.ApproximateReceiveCount, "1");
const handle = { QueueUrl, ReceiptHandle: message.ReceiptHandle };
await call(ChangeMessageVisibilityCommand, { ...handle, VisibilityTimeout: 120 });
await call(DeleteMessageCommand, handle);

// Batches.
const batch = await call(SendMessageBatchCommand, {
  QueueUrl,
  Entries: Array.from({ length: 10 }, (_, n) => ({ Id: `n${n}`, MessageBody: `body ${n}` })),
});
assert.equal(batch.Successful.length, 10);
assert.equal(batch.Failed, undefined);
const many = await call(ReceiveMessageCommand, { QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 5 });
assert.equal(many.Messages.length, 10);
const entries = many.Messages.map(({ ReceiptHandle }, n) => ({ Id: `n${n}`, ReceiptHandle }));
const changed = await call(ChangeMessageVisibilityBatchCommand, {
  QueueUrl,
  Entries: entries.map((entry) => ({ ...entry, VisibilityTimeout: 90 })),
});
assert.equal(changed.Successful.length, 10);
const deleted = await call(DeleteMessageBatchCommand, {
  QueueUrl,
  Entries: [...entries.slice(1), { Id: "bad", ReceiptHandle: "garbage" }],
});
assert.equal(deleted.Successful.length, 9);
assert.equal(deleted.Failed[0].Code, "ReceiptHandleIsInvalid");
assert.equal((await call(ReceiveMessageCommand, { QueueUrl })).Messages, undefined);

// Attributes, tags, pages.
await call(SetQueueAttributesCommand, { QueueUrl, Attributes: { VisibilityTimeout: "45" } });
await call(TagQueueCommand, { QueueUrl, Tags: { more: "tags" } });
const { Attributes } = await call(GetQueueAttributesCommand, { QueueUrl, AttributeNames: ["All"] });
assert.equal(Attributes.VisibilityTimeout, "45");
assert.equal(Attributes.ApproximateNumberOfMessagesNotVisible, "1");
assert.deepEqual((await call(ListQueueTagsCommand, { QueueUrl })).Tags, { from: "node", more: "tags" });
let listed = 0;
for await (const page of paginateListQueues({ client, pageSize: 1 }, { QueueNamePrefix: QueueName })) {
  listed += page.QueueUrls.length;
}
assert.equal(listed, 1);

// Errors arrive as classes.
await assert.rejects(call(DeleteMessageCommand, { QueueUrl, ReceiptHandle: "garbage" }), ReceiptHandleIsInvalid);
await call(PurgeQueueCommand, { QueueUrl });
await call(DeleteQueueCommand, { QueueUrl });
let failure;
try {
  await call(SendMessageCommand, { QueueUrl, MessageBody: "too late" });
} catch (error) {
  failure = error;
}
assert.ok(failure instanceof QueueDoesNotExist, String(failure));
client.destroy();
console.log(
  JSON.stringify({
    error: failure.name,
    code: failure.Error?.Code ?? failure.Code,
    status: failure.$metadata.httpStatusCode,
    requestId: failure.$metadata.requestId,
  }),
);
