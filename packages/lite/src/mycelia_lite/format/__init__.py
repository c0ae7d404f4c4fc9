"""The .ms file format of MindSpore Lite."""
