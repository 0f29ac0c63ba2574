"""The input and output of every SQS action, as typed values that both protocols share.

Field names are ours, member names on the wire are the service's. An absent required text is empty, an absent list or map
is empty, an absent optional value is None: `actions` says which of them are required.
"""
