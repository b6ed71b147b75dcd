# SPDX-License-Identifier: Apache-2.0
# OpenCV: filters of its transparent API (UMat) agree with the same filters on the host.
import cv2
import numpy

cv2.ocl.setUseOpenCL(True)
assert cv2.ocl.useOpenCL(), "no OpenCL"
random = numpy.random.default_rng(5)
image = random.integers(0, 256, (96, 128), dtype=numpy.uint8)
other = random.integers(0, 256, (96, 128), dtype=numpy.uint8)
filters = {
    "sum": lambda a, b: cv2.add(a, b),
    "difference": lambda a, b: cv2.absdiff(a, b),
    "blur": lambda a, b: cv2.GaussianBlur(a, (5, 5), 1.5),
    "median": lambda a, b: cv2.medianBlur(a, 3),
    "threshold": lambda a, b: cv2.threshold(a, 100, 255, cv2.THRESH_BINARY)[1],
    "erosion": lambda a, b: cv2.erode(a, numpy.ones((3, 3), numpy.uint8)),
    "resize": lambda a, b: cv2.resize(a, (64, 48), interpolation=cv2.INTER_LINEAR),
    "edges": lambda a, b: cv2.Sobel(a, cv2.CV_16S, 1, 0),
    "color": lambda a, b: cv2.cvtColor(a, cv2.COLOR_GRAY2BGR),
    "histogram": lambda a, b: cv2.equalizeHist(a),
}
for name, use in filters.items():
    found = use(cv2.UMat(image), cv2.UMat(other)).get()
    expected = use(image, other)
    distance = numpy.abs(found.astype(int) - expected.astype(int)).max()
    assert distance <= 1, "%s: %d" % (name, distance)
print(len(filters), "filters agree")
