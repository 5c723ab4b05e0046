"""Adapters: each folder turns V3 calls into one provider's native requests, and its answers and events back into V3.

A folder has request, response and stream (pure) and model (client, errors, cancellation). `common` is no provider: it
is what they share.
No retries, no policy, no conversation state: those belong to the pipeline around a model.
"""
