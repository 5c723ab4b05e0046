"""What providers share: how prompts are walked and calls paired, how answers are named, bodies, events and errors. It
knows none of them.
"""
