"""TFRecords that we write, read by TensorFlow's own reader. Usage: tfrecord_test.py path/to/trireme. Exit code 77: there
is no TensorFlow."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
TRIREME = sys.argv[1]

try:
    import tensorflow as tf
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(SKIPPED)

FEATURES = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    "image/class/text": tf.io.FixedLenFeature([], tf.string),
    "image/height": tf.io.FixedLenFeature([], tf.int64),
    "image/width": tf.io.FixedLenFeature([], tf.int64),
    "image/object/bbox/ymin": tf.io.VarLenFeature(tf.float32),
    "image/object/bbox/xmax": tf.io.VarLenFeature(tf.float32),
}


class TfRecords(unittest.TestCase):
    def test_tensorflow_reads_them(self):
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder, "data")
            subprocess.run([TRIREME, "data", "make", "--out", made, "--format", "tfrecord", "--samples", "20",
                            "--validation-samples", "0", "--shards", "3", "--classes", "4", "--size", "48x40"],
                           check=True, stdout=subprocess.DEVNULL)
            names = (made / "classes.txt").read_text().split()
            labels = []
            files = sorted(str(path) for path in made.glob("train-*-of-00003"))
            for record in tf.data.TFRecordDataset(files):
                example = tf.io.parse_single_example(record, FEATURES)
                image = tf.io.decode_jpeg(example["image/encoded"])
                self.assertEqual(image.shape, (40, 48, 3))
                self.assertEqual((example["image/height"], example["image/width"]), (40, 48))
                label = int(example["image/class/label"])
                self.assertEqual(example["image/class/text"].numpy().decode(), names[label])
                self.assertEqual(example["image/object/bbox/ymin"].values.shape, (1,))
                labels.append(label)
            self.assertEqual(sorted(labels), sorted(list(range(4)) * 5))

    def test_we_read_tensorflows(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "train-00000-of-00001")
            jpeg = tf.io.encode_jpeg(tf.zeros([17, 23, 3], tf.uint8)).numpy()
            with tf.io.TFRecordWriter(str(path)) as writer:
                for label in (3, 1, 3):
                    feature = {
                        "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg])),
                        "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                        "image/object/bbox/xmin": tf.train.Feature(float_list=tf.train.FloatList(value=[])),
                    }
                    example = tf.train.Example(features=tf.train.Features(feature=feature))
                    writer.write(example.SerializeToString())
            subprocess.run([TRIREME, "data", "verify", folder], check=True, stdout=subprocess.DEVNULL)
            found = subprocess.run([TRIREME, "data", "inspect", folder, "--json"], check=True, capture_output=True)
            split = json.loads(found.stdout)["splits"][0]
            self.assertEqual([(entry["label"], entry["samples"]) for entry in split["classes"]], [(1, 1), (3, 2)])
            self.assertEqual(split["dimensions"], [{"width": 23, "height": 17, "samples": 3}])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
