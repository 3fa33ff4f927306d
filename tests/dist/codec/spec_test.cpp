#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tern/core/share_of.h"
#include "tern/dist/codec/codec.h"
#include "tern/dist/codec/spec.h"
#include "tern/dist/exchange/exchange.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

std::string refusal(const std::string& spec) {
  return message_of<InputError>([&] { make_codec(spec); });
}

TEST(CodecSpec, FillsInTheDefaults) {
  EXPECT_EQ(make_codec("ternary")->spec(), "ternary:clip=2.5,clip-mode=paper,share=auto,bucket=0,pack=2bit");
  EXPECT_EQ(make_codec("ternary:clip-mode=own")->spec(), "ternary:clip=2.5,clip-mode=own,share=on,bucket=0,pack=2bit");
  EXPECT_EQ(make_codec("qsgd")->spec(), "qsgd:bits=4,bucket=512,norm=max,code=fixed,align=none");
  EXPECT_EQ(make_codec("qsgd:bits=2,bucket=128,norm=max,code=elias")->spec(),
            "qsgd:bits=2,bucket=128,norm=max,code=elias,align=none");
  EXPECT_EQ(make_codec("qsgd:levels=5")->spec(), "qsgd:levels=5,bucket=512,norm=max,code=fixed,align=none");
  EXPECT_EQ(make_codec("qsgd:code=entropy")->spec(), "qsgd:bits=4,bucket=512,norm=l2,code=entropy,align=none");
  EXPECT_EQ(make_codec("qsgd:code=elias")->spec(), "qsgd:bits=4,bucket=512,norm=l2,code=elias,align=none");
  EXPECT_EQ(make_codec("error-feedback:topk:ratio=0.1")->spec(), "error-feedback:topk:ratio=0.1");
  EXPECT_EQ(make_codec("none")->spec(), "none");
}

TEST(CodecSpec, ReadsItsOwnWriting) {
  for (const std::string& name : codec_names()) {
    const std::string spec = make_codec(name)->spec();
    EXPECT_EQ(make_codec(spec)->spec(), spec);
  }
}

TEST(CodecSpec, NamesWhatIsWrongAndWhatWouldBeRight) {
  EXPECT_EQ(refusal("ternery"), "no codec 'ternery', did you mean 'ternary'?");
  EXPECT_EQ(refusal("eror-feedback:topk"), "no codec 'eror-feedback', did you mean 'error-feedback'?");
  EXPECT_EQ(refusal("zip"),
            "no codec 'zip'; there are none, fp16, bf16, ternary, qsgd, onebit, topk, randk, topk-block, "
            "hadamard, and error-feedback: "
            "before those that lose something");
  EXPECT_EQ(refusal("ternary:clib=2"),
            "codec ternary: no parameter 'clib'; it has clip, clip-mode, share, bucket, pack");
  EXPECT_EQ(refusal("ternary:clip"), "codec ternary: 'clip' is no parameter; expected NAME=VALUE");
  EXPECT_EQ(refusal("ternary:clip=x"), "codec ternary: clip=x; expected a number from 0 to 1000000");
  EXPECT_EQ(refusal("ternary:clip=nan"), "codec ternary: clip=nan; expected a number from 0 to 1000000");
  EXPECT_EQ(refusal("ternary:clip=1,clip=2"), "codec ternary: parameter 'clip' is given twice");
  EXPECT_EQ(refusal("ternary:clip=1,"), "codec ternary: nothing follows the last comma");
  EXPECT_EQ(refusal("topk:"), "codec topk: no parameter follows ':'; it has ratio");
  EXPECT_EQ(refusal("none:"), "codec none: found ':', expected nothing after the name, because it has no parameters");
  EXPECT_EQ(refusal("topk:ratio=0.5:"), "codec topk: ratio=0.5:; expected a number from 1e-09 to 1");
  EXPECT_EQ(refusal("ternary:clip-mode=own,clip=0"),
            "codec ternary: clip-mode=own would change nothing: clip=0 does not clip");
  EXPECT_EQ(refusal("ternary:clip-mode=reference,clip=0"),
            "codec ternary: clip-mode=reference would change nothing: clip=0 does not clip");
  EXPECT_EQ(refusal("ternary:clip-mode=own,share=off"),
            "codec ternary: clip-mode=own would change nothing: with share=off each rank has its own limit anyway");
  EXPECT_EQ(refusal("topk-block:keep=5000"), "codec topk-block: keep=5000; expected a whole number from 1 to 4096");
  EXPECT_EQ(refusal("topk-block:keep=65,side=8,run=10"),
            "codec topk-block: keep=65; expected a whole number from 1 to 64");
  EXPECT_EQ(refusal("ternary:pack=3bit"), "codec ternary: pack=3bit; expected 2bit or 5trit or entropy");
  EXPECT_EQ(refusal("qsgd:bits=1"), "codec qsgd: bits=1; expected a whole number from 2 to 16");
  EXPECT_EQ(refusal("qsgd:bits=4.5"), "codec qsgd: bits=4.5; expected a whole number from 2 to 16");
  EXPECT_EQ(refusal("qsgd:bits=4,levels=7"),
            "codec qsgd: bits and levels are two ways to say one thing; expected one of them");
  EXPECT_EQ(refusal("none:x=1"), "codec none: no parameter 'x'; it has none");
  EXPECT_EQ(refusal("error-feedback:"), "codec error-feedback: expected a codec after it, as in error-feedback:topk");
  EXPECT_EQ(
      refusal("error-feedback:ternary:clip-mode=own"),
      "codec ternary:clip=2.5,clip-mode=own,share=on,bucket=0,pack=2bit shares scalers, which error-feedback: does "
      "not; expected share=auto or off");
  EXPECT_EQ(refusal("error-feedback:none"), "codec none loses nothing; leave out error-feedback:");
  EXPECT_EQ(refusal("error-feedback:onebit"), "codec onebit has error feedback already; leave out error-feedback:");
  EXPECT_NE(refusal(""), "");
}

TEST(CodecSpec, HelpNamesEveryCodec) {
  const std::string help = codec_help();
  for (const std::string& name : codec_names()) EXPECT_NE(help.find("\n" + name + "\n"), std::string::npos) << name;
  EXPECT_NE(help.find("error-feedback:CODEC"), std::string::npos);
}

std::unique_ptr<GradientCodec> make_half(SpecParameters& options) {
  options.integer("bits", 16, 16, 16);
  options.finish();
  return make_codec("fp16");
}

TEST(CodecSpec, TakesACodecOfOnesOwn) {
  const CodecEntry own[] = {{"a-half-of-a-float", "bits=16", "16", "nearest", make_half}};
  EXPECT_EQ(make_codec("a-half-of-a-float", own)->spec(), "fp16");
  EXPECT_EQ(make_codec("error-feedback:a-half-of-a-float:bits=16", own)->spec(), "error-feedback:fp16");
  EXPECT_EQ(make_codec("topk", own)->spec(), make_codec("topk")->spec());
  EXPECT_EQ(message_of<InputError>([&] { make_codec("a-half-of-a-float:bits=8", own); }),
            "codec a-half-of-a-float: bits=8; expected a whole number from 16 to 16");
  EXPECT_NE(message_of<InputError>([&] { make_codec("half", own); }).find("hadamard, a-half-of-a-float, and"),
            std::string::npos);
  EXPECT_NE(codec_help(own).find("\na-half-of-a-float\n  parameters  bits=16\n"), std::string::npos);
  EXPECT_NE(exchange_help(own).find("  hadamard  a-half-of-a-float\nring "), std::string::npos) << exchange_help(own);
}

TEST(CodecSpec, RefusesTwoCodecsOfOneName) {
  for (const char* name : {"topk", "error-feedback"}) {
    const CodecEntry own[] = {{name, "none", "16", "nearest", make_half}};
    EXPECT_EQ(message_of<Error>([&] { make_codec("fp16", own); }),
              std::string("codec ") + name + ": another has this name already");
  }
}

TEST(ShareOf, RoundsADecimalShareUp) {
  EXPECT_EQ(share_of(100, 0.07), 7);
  EXPECT_EQ(share_of(101, 0.07), 8);
  EXPECT_EQ(share_of(5, 0.01), 1);
  EXPECT_EQ(share_of(0, 0.01), 0);
  EXPECT_EQ(share_of(7, 1), 7);
  for (int64_t percent = 1; percent <= 100; ++percent)
    for (int64_t n = 100; n < 100'000; n *= 10)
      EXPECT_EQ(share_of(n, static_cast<double>(percent) / 100), percent * n / 100) << percent << " % of " << n;
  for (const char* codec : {"topk:ratio=", "randk:ratio="})
    EXPECT_EQ(make_codec(std::string(codec) + "0.07")->most_bytes({100}),
              make_codec(std::string(codec) + "0.0699")->most_bytes({100}))
        << codec;
}

}  // namespace
}  // namespace tern
