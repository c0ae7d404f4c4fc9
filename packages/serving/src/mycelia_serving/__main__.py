"""`python -m mycelia_serving`: the command mycelia-serving."""

from mycelia_serving.cli import app

if __name__ == "__main__":
    app(prog_name="mycelia-serving")
