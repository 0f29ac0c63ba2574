"""What every SQS action takes and gives, as typed values that both protocols share.

Field names are ours, member names on the wire are the service's. An absent required text is empty, an absent
list or map is empty, an absent optional value is None: which of them must be given is `actions`' to say.
"""
