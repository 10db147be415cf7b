// SPDX-License-Identifier: Apache-2.0
//
// A multi-layer perceptron on MNIST with a hand-written training loop, in C++:
//     mnist_cpp [EPOCHS [SEED [FOLDER [WEIGHTS]]]]
// Defaults: 20 epochs, seed 1, folder $CATENA_DATA/mnist. The weights are saved if a file is named.
// mnist.c is the same program in C. Both print the same and write the same file, to the bit.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <catena/catena.hpp>

using namespace catena;

class Mlp
{
public:
    explicit Mlp(ModuleRef self)
        : fc1_(self.add("fc1", linear_new(self.context(), 784, 1000))),
          fc2_(self.add("fc2", linear_new(self.context(), 1000, 1000))),
          fc3_(self.add("fc3", linear_new(self.context(), 1000, 10)))
    {
    }
    Tensor forward(const Tensor &x) // x (N,784) -> (N,10)
    {
        return fc3_(relu(fc2_(relu(fc1_(x)))));
    }

private:
    ModuleRef fc1_, fc2_, fc3_;
};

struct Data {
    Data(const std::string &dir, ctn_split split, std::uint64_t seed)
        : set(mnist_open(dir, split)), order(sampler_shuffled(set.count(), seed)),
          loader(set, order, LoaderOpt().batch(100))
    {
    }
    Dataset set;
    Sampler order;
    Loader loader;
};

// One pass over the training data. Returns the mean loss.
static double train(ModuleRef net, OptimRef opt, LoaderRef data)
{
    double sum = 0, n = 0;
    for (ctn_batch b; data.next(b); n += static_cast<double>(b.n)) {
        Scope scope(net.context());
        const Tensor t = batch_tensor(net.context(), b, 1);
        const Tensor y = net(batch_tensor(net.context(), b, 0));
        const Tensor loss = softmax_cross_entropy(y, t);
        opt.backward(loss);
        opt.step();
        sum += loss.item() * static_cast<double>(b.n);
        scope.end();
    }
    return sum / n;
}

// One pass over the test data. Returns the accuracy.
static double test(ModuleRef net, LoaderRef data)
{
    const Evaluation evaluation(net.context());
    double sum = 0, n = 0;
    for (ctn_batch b; data.next(b); n += static_cast<double>(b.n)) {
        Scope scope(net.context());
        const Tensor t = batch_tensor(net.context(), b, 1);
        const Tensor y = net(batch_tensor(net.context(), b, 0));
        sum += accuracy(y, t, 1).item() * static_cast<double>(b.n);
        scope.end();
    }
    return sum / n;
}

static void run(int epochs, std::uint64_t seed, const std::string &dir, const char *weights)
{
    const Context ctx(ContextOpt().seed(seed));
    const Data training(dir, CTN_TRAIN, seed), tests(dir, CTN_TEST, seed);
    const Module net = make_module<Mlp>(ctx);
    const Optim opt = adam_new(net.params());
    opt.set_schedule(SchedOpt().kind(CTN_SCHED_COSINE).steps(epochs * 600));
    for (int e = 1; e <= epochs; e++) {
        const double loss = train(net, opt, training.loader);
        const double right = test(net, tests.loader);
        std::printf("epoch %2d  loss %.6f  accuracy %.4f\n", e, loss, right);
    }
    if (weights) net.save(weights);
}

int main(int argc, char **argv)
try {
    const char *root = std::getenv("CATENA_DATA");
    const std::string folder = std::string(root ? root : ".") + "/mnist";
    run(argc > 1 ? std::atoi(argv[1]) : 20, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1,
        argc > 3 ? argv[3] : folder, argc > 4 ? argv[4] : nullptr);
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "mnist: %s\n", e.what());
    return 1;
}
