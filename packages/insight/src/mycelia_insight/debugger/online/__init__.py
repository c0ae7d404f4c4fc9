"""Running trainings under the debugger: who connects, what they are told, and the session over them."""
