"""The pipelines of data.py in tf.data."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
from data_files import BATCH, MEAN, RECORD, RECORDS, STD, images
from peers import FILES, Items

PATH = str(FILES / "tf.tfrecord")
FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def evaluation(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), 3)
    size = tf.shape(image)[:2]
    scale = 256.0 / tf.cast(tf.reduce_min(size), tf.float32)
    image = tf.image.resize(image, tf.cast(tf.round(tf.cast(size, tf.float32) * scale), tf.int32))
    return normalized(tf.image.resize_with_crop_or_pad(image, 224, 224))


def training(path):
    data = tf.io.read_file(path)
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.io.extract_jpeg_shape(data), tf.zeros([1, 0, 4]), area_range=(0.08, 1.0),
        use_image_if_no_bounding_boxes=True,
    )  # fmt: skip
    image = tf.image.decode_and_crop_jpeg(data, tf.concat([begin[:2], size[:2]], 0), 3)
    return normalized(tf.image.random_flip_left_right(tf.image.resize(image, (224, 224))))


def normalized(image):
    return tf.transpose((image - tf.constant(MEAN)) / tf.constant(STD), [2, 0, 1])


def write() -> int:
    def feature(**value):
        return tf.train.Feature(**value)

    with tf.io.TFRecordWriter(PATH) as file:
        for k in range(RECORDS):
            features = {
                "image": feature(bytes_list=tf.train.BytesList(value=[RECORD])),
                "label": feature(int64_list=tf.train.Int64List(value=[k % 1000])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            file.write(example.SerializeToString())
    return RECORDS


def records(shuffle: bool):
    if not os.path.exists(PATH):
        write()
    dataset = tf.data.TFRecordDataset(PATH)
    if shuffle:
        dataset = dataset.shuffle(10_000)
    parsed = dataset.batch(BATCH).map(lambda data: tf.io.parse_example(data, FEATURES))
    return parsed.prefetch(2)


def cases(threads: int):
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)

    def read(dataset, count: int) -> Items:
        options = tf.data.Options()
        options.threading.private_threadpool_size = threads
        dataset = dataset.with_options(options)

        def epoch() -> int:
            for _ in dataset.as_numpy_iterator():
                pass
            return count

        return Items(epoch)

    def make(case: str) -> Items | None:
        files = images()
        if case in ("JPEG evaluation b32", "JPEG training b32"):
            source = tf.data.Dataset.from_tensor_slices(files)
            if "training" in case:
                mapped = source.shuffle(512).map(training, num_parallel_calls=threads)
            else:
                mapped = source.map(evaluation, num_parallel_calls=threads)
            return read(mapped.batch(32).prefetch(2), len(files))
        if case == "record write, 784 B":
            return Items(write)
        if "ecord read" in case:
            return read(records("shuffled" in case), RECORDS)
        return None

    return make
