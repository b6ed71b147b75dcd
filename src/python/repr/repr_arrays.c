/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shape, type and device of a torch.Tensor, shape and type of a numpy.ndarray, without either
 * library: "<Tensor (8, 128) float32 cuda:0>". torch's offsets differ by version, so they are found
 * by invariants: the tensor points back to its Python object, and its element count is the product
 * of its sizes. Otherwise it is shown like any other object.
 */
#include <inttypes.h>
#include <stdio.h>

#include "python/repr/repr_internal.h"

#define MAX_DIMENSIONS 64
#define SHOWN_DIMENSIONS 8
#define TENSOR_WORDS 40 /* bytes of c10::TensorImpl that are searched */
#define INLINE_DIMENSIONS 5

/* c10::ScalarType, by number. */
static const char *const tensor_types[] = {
	"uint8",           "int8",
	"int16",           "int32",
	"int64",           "float16",
	"float32",         "float64",
	"complex32",       "complex64",
	"complex128",      "bool",
	"qint8",           "quint8",
	"qint32",          "bfloat16",
	"quint4x2",        "quint2x4",
	"bits1x8",         "bits2x4",
	"bits4x2",         "bits8",
	"bits16",          "float8_e5m2",
	"float8_e4m3fn",   "float8_e5m2fnuz",
	"float8_e4m3fnuz", "uint16",
	"uint32",          "uint64",
};

/* c10::DeviceType, by number; 20 is PrivateUse1, whose name only the vendor knows. */
static const char *const devices[] = {
	"cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
	"fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
	"meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone",
};

/* NPY_TYPES, by number. */
static const char *const array_types[] = {
	"bool",    "int8",       "uint8",     "int16",      "uint16",      "int32",
	"uint32",  "int64",      "uint64",    "int64",      "uint64",      "float32",
	"float64", "longdouble", "complex64", "complex128", "clongdouble", "object",
	"bytes",   "str",        "void",      "datetime64", "timedelta64", "float16",
};

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static void put_shape(struct ts_python_repr *repr, const int64_t *sizes, size_t count)
{
	char text[32];

	ts_python_repr_string(repr, "(");
	for (size_t i = 0; i < count && i < SHOWN_DIMENSIONS; i++) {
		snprintf(text, sizeof(text), i ? ", %" PRId64 : "%" PRId64, sizes[i]);
		ts_python_repr_string(repr, text);
	}
	ts_python_repr_string(repr, count > SHOWN_DIMENSIONS ? ", ...)" : count == 1 ? ",)" : ")");
}

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

static void put_array(struct ts_python_repr *repr, const struct ts_python_class *class,
		      const int64_t *sizes, size_t count, const char *type, const char *device)
{
	ts_python_repr_string(repr, "<");
	ts_python_repr_string(repr, last_part(class->name));
	ts_python_repr_string(repr, " ");
	put_shape(repr, sizes, count);
	ts_python_repr_string(repr, " ");
	ts_python_repr_string(repr, type);
	if (device[0])
		ts_python_repr_string(repr, " ");
	ts_python_repr_string(repr, device);
	ts_python_repr_string(repr, ">");
}

static bool product_of(const int64_t *sizes, size_t count, int64_t *ret_product)
{
	int64_t product = 1;

	for (size_t i = 0; i < count; i++)
		if (sizes[i] < 0 || __builtin_mul_overflow(product, sizes[i], &product))
			return false;
	*ret_product = product;
	return true;
}

/* ---- torch ---- */

struct tensor {
	int64_t sizes[MAX_DIMENSIONS];
	size_t dimensions;
	uint16_t type;
	int8_t device, device_index;
	bool has_device;
};

/*
 * Sizes and strides: their number, then both inline up to five, else a pointer and padding; then
 * storage offset, element count, type and device. `at`: index of their number.
 */
static bool parse_tensor(struct ts_python_process_view *view, const uint64_t *words, size_t at,
			 struct tensor *tensor)
{
	size_t behind = at + 1 + 2 * INLINE_DIMENSIONS;
	int64_t elements;
	uint8_t device[3]; /* type, index, whether there is one */

	if (behind + 2 >= TENSOR_WORDS || words[at] > MAX_DIMENSIONS)
		return false;
	tensor->dimensions = (size_t)words[at];
	if (tensor->dimensions <= INLINE_DIMENSIONS)
		memcpy(tensor->sizes, words + at + 1, tensor->dimensions * 8);
	else if (!ts_python_memory_read(view->memory, words[at + 1], tensor->sizes,
					tensor->dimensions * 8))
		return false;
	if (!product_of(tensor->sizes, tensor->dimensions, &elements) ||
	    (uint64_t)elements != words[behind + 1] || words[behind] > INT64_MAX)
		return false;
	tensor->type = (uint16_t)words[behind + 2];
	memcpy(device, (const char *)(words + behind + 2) + 2, sizeof(device));
	tensor->device = (int8_t)device[0];
	tensor->device_index = (int8_t)device[1];
	tensor->has_device = device[2] == 1 && device[0] < COUNT(devices);
	return tensor->type < COUNT(tensor_types);
}

/* Searches after the word that points back to the Python object. */
static bool read_tensor(struct ts_python_process_view *view, uint64_t object, uint64_t address,
			struct tensor *tensor)
{
	uint64_t words[TENSOR_WORDS];

	if (!ts_python_is_address(address) ||
	    !ts_python_memory_read(view->memory, address, words, sizeof(words)))
		return false;
	for (size_t i = 2; i + 1 < TENSOR_WORDS; i++)
		if ((words[i] & ~UINT64_C(1)) == object && parse_tensor(view, words, i + 1, tensor))
			return true;
	return false;
}

static bool put_tensor(struct ts_python_repr *repr, const struct ts_python_class *class,
		       uint64_t object)
{
	struct tensor tensor;
	uint64_t words[3];
	char device[32] = "";

	if (!ts_python_memory_read(repr->view->memory, object + repr->view->layout->object.bytes,
				   words, sizeof(words)))
		return false;
	for (size_t i = 0; i < COUNT(words); i++) {
		if (!read_tensor(repr->view, object, words[i], &tensor))
			continue;
		if (tensor.has_device && tensor.device_index >= 0)
			snprintf(device, sizeof(device), "%s:%d", devices[tensor.device],
				 tensor.device_index);
		else if (tensor.has_device)
			snprintf(device, sizeof(device), "%s", devices[tensor.device]);
		put_array(repr, class, tensor.sizes, tensor.dimensions, tensor_types[tensor.type],
			  device);
		return true;
	}
	return false;
}

/* ---- numpy ---- */

/* The name of a dtype by its number, which follows its class and four letters. */
static const char *array_type(struct ts_python_process_view *view, uint64_t dtype)
{
	int32_t number;

	if (!ts_python_is_address(dtype) ||
	    !ts_python_memory_read(view->memory, dtype + view->layout->object.bytes + 12, &number,
				   sizeof(number)) ||
	    number < 0 || (size_t)number >= COUNT(array_types))
		return "?";
	return array_types[number];
}

static bool put_ndarray(struct ts_python_repr *repr, const struct ts_python_class *class,
			uint64_t object)
{
	uint64_t words[6]; /* data, nd, dimensions, strides, base, descr */
	int64_t sizes[MAX_DIMENSIONS], elements;
	uint32_t count;

	if (!ts_python_memory_read(repr->view->memory, object + repr->view->layout->object.bytes,
				   words, sizeof(words)))
		return false;
	count = (uint32_t)words[1];
	if (count > MAX_DIMENSIONS ||
	    (count && !ts_python_memory_read(repr->view->memory, words[2], sizes, count * 8u)) ||
	    !product_of(sizes, count, &elements))
		return false;
	put_array(repr, class, sizes, count, array_type(repr->view, words[5]), "");
	return true;
}

bool ts_python_repr_array(struct ts_python_repr *repr, const struct ts_python_class *class,
			  uint64_t object)
{
	if (!strcmp(class->root, "torch._C.TensorBase") ||
	    !strcmp(class->root, "torch._C._TensorBase"))
		return put_tensor(repr, class, object);
	if (!strcmp(class->root, "numpy.ndarray"))
		return put_ndarray(repr, class, object);
	return false;
}
