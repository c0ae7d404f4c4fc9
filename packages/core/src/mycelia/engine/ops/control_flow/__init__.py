"""What concerns a running program: control flow, assignment, checks, printed and recorded values."""
