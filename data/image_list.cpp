#include "tern/data/image_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>
#include <string_view>

#include "tern/core/error.h"
#include "tern/core/escaped.h"

namespace tern {
namespace {

constexpr const char* kBlank = " \t\r";

/// The first characters of `text`, quoted and escaped: the file may be binary.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 80;
  std::string quoted = "'";
  quoted += escaped(text.substr(0, kMost));
  return quoted += text.size() > kMost ? "'..." : "'";
}

/// Parses a line that is not blank. `where` names the file in errors.
ImageLine read_line(std::string_view text, int64_t number, const std::string& where) {
  text = text.substr(0, text.find_last_not_of(kBlank) + 1);
  const size_t gap = text.find_last_of(kBlank);
  const std::string_view word = text.substr(gap == std::string_view::npos ? 0 : gap + 1);
  const std::string_view path =
      text.substr(0, gap == std::string_view::npos ? 0 : text.find_last_not_of(kBlank, gap) + 1);
  ImageLine line{.number = number, .path = std::string(path)};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), line.label);
  check_input(!path.empty() && error == std::errc() && end == word.data() + word.size() && line.label >= 0, where,
              ": line ", number, ": found ", shown(text), ", expected a path and a label from 0 on");
  return line;
}

namespace fs = std::filesystem;

constexpr const char* kEndings[] = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".pgm", ".ppm"};

/// The list file or the folder of classes of each split. Both are the same if the splits share one.
struct Places {
  fs::path training, test;
};

/// Returns false for a link to itself; `fs::is_directory` without `error` throws for one.
bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool is_picture(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::find(kEndings, ending) != std::end(kEndings);
}

/// Names of the folders that are not hidden, sorted.
std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (is_folder(entry.path()) && !is_hidden(entry.path())) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

Places find_places(const fs::path& place) {
  if (fs::is_regular_file(place)) return {place, place};
  check_input(fs::is_directory(place), "images: ", place.string(), " is neither a folder nor a list of files");
  for (const char* ending : {".txt", ""}) {
    const auto named = [&](const char* split) { return place / join({split, ending}); };
    const auto is_there = [&](const char* split) {
      return *ending ? fs::is_regular_file(named(split))
                     : fs::is_directory(named(split)) && !folders_in(named(split)).empty();
    };
    if (!is_there("train")) continue;
    for (const char* split : {"val", "test"}) {
      if (is_there(split)) return {named("train"), named(split)};
      check_input(*ending || !is_folder(named(split)), "images: ", named(split).string(),
                  " is a folder without folders of classes, expected one for each class, as in train");
    }
    for (const char* split : {"val", "test"})
      check_input(!is_folder(place / split), "images: ", (place / split).string(),
                  " is a folder beside train.txt, expected the list ", split, ".txt");
    return {named("train"), named("train")};
  }
  return {place, place};
}

/// Fills in the file's size and time. Returns 0, EISDIR for a folder, or errno if `stat` fails.
int look_at(ImageFile& file) {
  struct stat status = {};
  if (::stat(file.path.c_str(), &status) != 0) return errno;
  file.bytes = static_cast<uint64_t>(status.st_size);
  file.modified_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  return S_ISDIR(status.st_mode) ? EISDIR : 0;
}

std::vector<std::string> classes_of_folders(const fs::path& folder) {
  auto names = folders_in(folder);
  check_input(!names.empty(), "images: ", folder.string(),
              " holds no folder, expected one for each class, with pictures");
  check_input(names.size() > 1, "images: ", folder.string(), " holds one class, '", names.front(),
              "', expected two or more");
  return names;
}

/// Whether the target of `link` is, or contains, one of the folders on the path `way`.
bool leads_back(const fs::path& link, const std::vector<fs::path>& way) {
  const fs::path end = fs::canonical(link);
  return std::ranges::any_of(way, [&](const fs::path& each) {
    const fs::path inner = fs::canonical(each);
    return std::mismatch(end.begin(), end.end(), inner.begin(), inner.end()).first == end.end();
  });
}

/// Adds the pictures in the last folder of the path `way`. Adds a link that leads back as a picture; it cannot be read
/// later.
void find_pictures(std::vector<fs::path>& way, std::vector<fs::path>& found) {
  for (const auto& entry : fs::directory_iterator(way.back())) {
    const fs::path& path = entry.path();
    if (is_hidden(path)) continue;
    std::error_code error;
    const bool folder = entry.is_directory(error);
    const bool back =
        folder ? entry.is_symlink() && leads_back(path, way) : error == std::errc::too_many_symbolic_link_levels;
    if (back || (!folder && is_picture(path))) {
      found.push_back(path);
    } else if (folder) {
      way.push_back(path);
      find_pictures(way, found);
      way.pop_back();
    }
  }
}

/// `name` is the class's folder in `folder`.
void add_class(const fs::path& folder, const std::string& name, int64_t label, std::vector<ImageFile>& files) {
  std::vector<fs::path> way = {folder, folder / name}, paths;
  find_pictures(way, paths);
  std::ranges::sort(paths);
  for (auto& path : paths) {
    ImageFile file{.path = std::move(path), .label = label};
    look_at(file);  // a broken link gives its error when it is read
    files.push_back(std::move(file));
  }
}

/// `classes` are the classes of the training split.
std::vector<ImageFile> list_folders(const fs::path& folder, const std::vector<std::string>& classes) {
  std::vector<ImageFile> files;
  for (const auto& name : folders_in(folder)) {
    const auto known = std::ranges::lower_bound(classes, name);
    check_input(known != classes.end() && *known == name, "images: ", folder.string(), " holds a class '", name,
                "', expected a class of the training pictures");
    const size_t before = files.size();
    add_class(folder, name, known - classes.begin(), files);
    check_input(files.size() > before, "images: ", (folder / name).string(),
                " holds no picture, expected .jpg, .jpeg, .png, .bmp, .gif, .pgm or .ppm files");
  }
  return files;
}

std::vector<ImageFile> list_lines(const fs::path& list, const std::vector<std::string>& classes) {
  std::vector<ImageFile> files;
  for (const ImageLine& line : read_image_lines(list)) {
    check_input(line.label < std::ssize(classes), list.string(), ": line ", line.number, ": found label ", line.label,
                ", expected 0 to ", classes.size() - 1, ", the labels of the training list");
    ImageFile file{.path = list.parent_path() / line.path, .label = line.label};
    const int error = look_at(file);
    check_input(error == 0, list.string(), ": line ", line.number, ": ", file.path.string(), ": ", std::strerror(error),
                ", expected an image file");
    files.push_back(std::move(file));
  }
  return files;
}

/// Of each class, keeps the pictures 2, 12, 22, ... for testing and the others for training.
void keep_share(Split split, size_t classes, std::vector<ImageFile>& files) {
  std::vector<int64_t> seen(classes);
  std::erase_if(files, [&](const ImageFile& file) {
    const bool for_test = seen[static_cast<size_t>(file.label)]++ % 10 == 1;
    return for_test != (split == Split::test);
  });
}

std::vector<std::string> classes_of(const fs::path& training) {
  if (!fs::is_regular_file(training)) return classes_of_folders(training);
  std::vector<std::string> names;
  for (int64_t i = 0, count = count_image_classes(training); i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

std::vector<ImageLine> read_image_lines(const std::filesystem::path& list) {
  std::ifstream file(list);
  check_input(file.is_open(), list.string(), ": cannot be read: ", std::strerror(errno));
  std::vector<ImageLine> lines;
  std::string text;
  for (int64_t number = 1; std::getline(file, text); ++number)
    if (text.find_first_not_of(kBlank) != std::string::npos) lines.push_back(read_line(text, number, list.string()));
  check_input(!lines.empty(), list.string(), ": found no line, expected a path and a label in each");
  return lines;
}

int64_t count_image_classes(const std::filesystem::path& list) {
  const auto lines = read_image_lines(list);
  std::set<int64_t> labels;
  for (const ImageLine& line : lines) labels.insert(line.label);
  const auto count = std::ssize(labels);
  check_input(count > 1, list.string(), ": found one class, ", *labels.begin(), ", expected two or more");
  for (const ImageLine& line : lines)
    check_input(line.label < count, list.string(), ": line ", line.number, ": found label ", line.label,
                ", expected 0 to ", count - 1, " for the ", count, " different labels of the list");
  return count;
}

std::vector<std::string> list_image_classes(const fs::path& place) { return classes_of(find_places(place).training); }

ImageList list_images(const fs::path& place, Split split) {
  const Places places = find_places(place);
  ImageList list{.classes = classes_of(places.training), .files = {}};
  const fs::path& own = split == Split::train ? places.training : places.test;
  list.files = fs::is_regular_file(own) ? list_lines(own, list.classes) : list_folders(own, list.classes);
  if (places.training == places.test) keep_share(split, list.classes.size(), list.files);
  check_input(!list.files.empty(), "images: ", own.string(),
              " has no picture for testing, expected a class of two or more");
  return list;
}

}  // namespace tern
