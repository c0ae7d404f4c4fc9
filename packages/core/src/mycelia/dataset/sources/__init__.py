"""Where rows come from: arrays, Python objects, files of many formats, published data sets."""
