"""The built-in middlewares, one module each. They know the pipeline and the protocol: no provider, and not each other.

Nothing is imported here: each is imported when a configuration or a program first uses it.
"""
