// In: the registers of a thread, tables of an ELF file, and a reader of the stack. Out: the registers of the caller.
// Called by look_at_native(). The tables are bounded and may hold anything.
#include "inspect/call_frames.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lrun::launcher {
namespace {

using Bytes = std::span<const unsigned char>;
using ReadStack = std::function<std::optional<Address>(Address)>;

/// Reads from bytes until they end; from then on everything is zero.
class Cursor {
 public:
  Cursor(Bytes bytes, Address address) : bytes_(bytes), address_(address) {}

  template <typename Value>
  Value take() {
    const Value value = value_at<Value>(bytes_, at_);
    skip(sizeof value);
    return value;
  }
  std::uint64_t unsigned_leb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = take<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80U) == 0 || !good_) return value;
    }
  }
  std::int64_t signed_leb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = take<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80U) != 0 && good_) continue;
      const bool is_negative = (byte & 0x40U) != 0 && shift + 7 < 64;
      return static_cast<std::int64_t>(is_negative ? value | (~std::uint64_t{0} << (shift + 7)) : value);
    }
  }
  /// A pointer as DW_EH_PE says. \param base  of pointers that are relative to data
  Address pointer(unsigned encoding, Address base) {
    constexpr unsigned kOmitted = 0xFF;
    if (encoding == kOmitted) return 0;
    const Address here = address_ + at_;
    const Address value = number(encoding & 0x0FU);
    switch (encoding & 0x70U) {
      case 0x00:
        return value;
      case 0x10:
        return value + here;
      case 0x30:
        return value + base;
      default:
        good_ = false;
        return 0;
    }
  }
  void skip(std::size_t count) {
    if (count > bytes_.size() - at_) good_ = false;
    at_ = good_ ? at_ + count : bytes_.size();
  }
  Bytes rest() const { return bytes_.subspan(at_); }
  /// The next bytes, which the cursor goes behind.
  Bytes next(std::uint64_t count) {
    const Bytes bytes = rest().subspan(0, static_cast<std::size_t>(std::min<std::uint64_t>(count, rest().size())));
    skip(static_cast<std::size_t>(std::min<std::uint64_t>(count, bytes_.size() + 1)));
    return bytes;
  }
  [[nodiscard]] Address address() const { return address_ + at_; }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return at_ >= bytes_.size(); }

 private:
  Address number(unsigned format) {
    switch (format) {
      case 0x00:
      case 0x04:
      case 0x0C:
        return take<std::uint64_t>();
      case 0x01:
        return unsigned_leb();
      case 0x02:
        return take<std::uint16_t>();
      case 0x03:
        return take<std::uint32_t>();
      case 0x09:
        return static_cast<Address>(signed_leb());
      case 0x0A:
        return static_cast<Address>(std::int64_t{take<std::int16_t>()});
      case 0x0B:
        return static_cast<Address>(std::int64_t{take<std::int32_t>()});
      default:
        good_ = false;
        return 0;
    }
  }

  Bytes bytes_;
  Address address_;
  std::size_t at_ = 0;
  bool good_ = true;
};

/// How a register of the caller is found.
struct Rule {
  enum class Kind { kSame, kUndefined, kAtOffset, kIsOffset, kRegister, kAtExpression, kIsExpression };
  Kind kind = Kind::kSame;
  std::int64_t offset = 0;   ///< from the canonical frame address
  std::uint64_t number = 0;  ///< of the register
  Bytes expression = {};
};

/// The rules at one place of a function.
struct Row {
  std::uint64_t frame_register = ThreadRegisters::kStackPointer;
  std::int64_t frame_offset = 0;
  Bytes frame_expression = {};  ///< in place of these two
  std::array<Rule, ThreadRegisters::kCount> rules{};
};

/// One function (FDE), with what those of its unit have in common (CIE).
struct Function {
  Address begin = 0;
  Address end = 0;
  std::uint64_t code_unit = 1;
  std::int64_t data_unit = 1;
  std::uint64_t return_register = ThreadRegisters::kCode;
  unsigned encoding = 0;
  bool has_extra = false;  ///< data whose length stands before it
  bool is_signal_frame = false;
  Bytes begin_program = {};
  Bytes program = {};
};

/// From an address on.
std::optional<Cursor> cursor_at(const CallFrameTables& tables, Address address) {
  if (address < tables.address || address - tables.address >= tables.part.size()) return std::nullopt;
  return Cursor(tables.part.subspan(static_cast<std::size_t>(address - tables.address)), address);
}

/// A record of .eh_frame, without its length. Empty: it is the end, or of 64-bit DWARF, which nobody writes.
std::optional<Cursor> record_at(const CallFrameTables& tables, Address address) {
  std::optional<Cursor> all = cursor_at(tables, address);
  if (!all) return std::nullopt;
  const auto length = all->take<std::uint32_t>();
  if (length == 0 || length >= 0xFFFFFFF0U || length > all->rest().size()) return std::nullopt;
  return Cursor(all->rest().subspan(0, length), all->address());
}

/// Fills in what is common. \return false: it cannot be understood
bool read_common(const CallFrameTables& tables, Address address, Function& function) {
  std::optional<Cursor> record = record_at(tables, address);
  if (!record || record->take<std::uint32_t>() != 0) return false;
  const auto version = record->take<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  std::vector<char> letters;
  while (const char letter = record->take<char>()) letters.push_back(letter);
  function.code_unit = record->unsigned_leb();
  function.data_unit = record->signed_leb();
  function.return_register = version == 1 ? record->take<std::uint8_t>() : record->unsigned_leb();
  if (letters.empty()) {
    function.begin_program = record->rest();
    return record->good();
  }
  if (letters.front() != 'z') return false;
  function.has_extra = true;
  const std::uint64_t length = record->unsigned_leb();
  const Address extra_address = record->address();
  Cursor extra(record->next(length), extra_address);
  for (const char letter : letters) {
    if (letter == 'R') function.encoding = extra.take<std::uint8_t>();
    if (letter == 'L') (void)extra.take<std::uint8_t>();
    if (letter == 'P') (void)extra.pointer(extra.take<std::uint8_t>(), 0);
    if (letter == 'S') function.is_signal_frame = true;
  }
  function.begin_program = record->rest();
  return record->good() && extra.good();
}

std::optional<Function> read_function(const CallFrameTables& tables, Address address) {
  std::optional<Cursor> record = record_at(tables, address);
  if (!record) return std::nullopt;
  const Address here = record->address();
  const auto back = record->take<std::uint32_t>();
  Function function;
  if (back == 0 || !read_common(tables, here - back, function)) return std::nullopt;
  function.begin = record->pointer(function.encoding, 0);
  function.end = function.begin + record->pointer(function.encoding & 0x0FU, 0);
  if (function.has_extra) (void)record->next(record->unsigned_leb());
  function.program = record->rest();
  return record->good() ? std::optional(function) : std::nullopt;
}

/// Where the record of the function is that holds `place`; 0: none does.
Address find_record(const CallFrameTables& tables, Address place) {
  std::optional<Cursor> index = cursor_at(tables, tables.index);
  if (!index) return 0;
  constexpr unsigned kSorted = 0x3B;  // signed, 4 bytes, relative to the index: no linker writes another one
  const auto version = index->take<std::uint8_t>();
  const auto frames = index->take<std::uint8_t>();
  const auto counted = index->take<std::uint8_t>();
  const auto entries = index->take<std::uint8_t>();
  (void)index->pointer(frames, tables.index);
  const std::uint64_t count = index->pointer(counted, tables.index);
  constexpr std::size_t kEntry = 8;
  if (version != 1 || entries != kSorted || !index->good() || count > index->rest().size() / kEntry) return 0;
  const Bytes table = index->rest();
  const auto address_of = [&](std::uint64_t at, std::size_t offset) {
    const auto value = value_at<std::int32_t>(table, static_cast<std::size_t>(at) * kEntry + offset);
    return tables.index + static_cast<Address>(std::int64_t{value});
  };
  std::uint64_t low = 0;
  std::uint64_t high = count;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (address_of(middle, 0) <= place) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? 0 : address_of(low - 1, 4);
}

/// Carries out one expression: a stack machine, without jumps, which no table needs.
class Expression {
 public:
  Expression(Bytes code, const ThreadRegisters& registers, const ReadStack& read)
      : code_(code, 0), registers_(registers), read_(read) {}

  /// Empty: it does something that these tables need not do, or needs what is not known.
  std::optional<Address> value(std::optional<Address> first) {
    if (first) stack_.push_back(*first);
    while (!code_.at_end()) {
      const unsigned operation = code_.take<std::uint8_t>();
      if (!push_constant(operation) && !use_one(operation) && !use_two(operation)) return std::nullopt;
    }
    return stack_.empty() || !code_.good() ? std::nullopt : std::optional(stack_.back());
  }

 private:
  /// Each returns false where the operation is none of its own, or cannot be carried out.
  bool push_constant(unsigned operation) {
    if (operation >= 0x30 && operation <= 0x4F) return push(operation - 0x30);  // DW_OP_lit
    if (operation >= 0x70 && operation <= 0x80) {                               // DW_OP_breg
      const std::int64_t offset = code_.signed_leb();
      const std::optional<Address>& base = registers_.values[operation - 0x70];
      return base && push(*base + static_cast<Address>(offset));
    }
    switch (operation) {
      case 0x08:  // DW_OP_const1u, 1s, 2u, … 8s
        return push(code_.take<std::uint8_t>());
      case 0x09:
        return push(static_cast<Address>(std::int64_t{code_.take<std::int8_t>()}));
      case 0x0A:
        return push(code_.take<std::uint16_t>());
      case 0x0B:
        return push(static_cast<Address>(std::int64_t{code_.take<std::int16_t>()}));
      case 0x0C:
        return push(code_.take<std::uint32_t>());
      case 0x0D:
        return push(static_cast<Address>(std::int64_t{code_.take<std::int32_t>()}));
      case 0x0E:
      case 0x0F:
        return push(code_.take<std::uint64_t>());
      case 0x10:  // DW_OP_constu, consts
        return push(code_.unsigned_leb());
      case 0x11:
        return push(static_cast<Address>(code_.signed_leb()));
      default:
        return false;
    }
  }

  bool use_one(unsigned operation) {
    if (stack_.empty()) return false;
    Address& top = stack_.back();
    switch (operation) {
      case 0x06: {  // DW_OP_deref
        const std::optional<Address> value = read_(top);
        if (value) top = *value;
        return value.has_value();
      }
      case 0x12:  // DW_OP_dup
        return push(top);
      case 0x13:  // DW_OP_drop
        stack_.pop_back();
        return true;
      case 0x1F:  // DW_OP_neg
        top = Address{0} - top;
        return true;
      case 0x20:  // DW_OP_not
        top = ~top;
        return true;
      case 0x23:  // DW_OP_plus_uconst
        top += code_.unsigned_leb();
        return true;
      case 0x96:  // DW_OP_nop
        return true;
      default:
        return false;
    }
  }

  bool use_two(unsigned operation) {
    if (stack_.size() < 2) return false;
    const Address right = stack_.back();
    stack_.pop_back();
    Address& left = stack_.back();
    const auto signed_left = static_cast<std::int64_t>(left);
    const auto signed_right = static_cast<std::int64_t>(right);
    switch (operation) {
      case 0x14:  // DW_OP_over
        stack_.push_back(right);
        return push(stack_[stack_.size() - 2]);
      case 0x16:  // DW_OP_swap
        return push(std::exchange(left, right));
      case 0x1A:  // DW_OP_and
        return set(left & right);
      case 0x1C:  // DW_OP_minus
        return set(left - right);
      case 0x1E:  // DW_OP_mul
        return set(left * right);
      case 0x21:  // DW_OP_or
        return set(left | right);
      case 0x22:  // DW_OP_plus
        return set(left + right);
      case 0x24:  // DW_OP_shl
        return set(right < 64 ? left << right : 0);
      case 0x25:  // DW_OP_shr
        return set(right < 64 ? left >> right : 0);
      case 0x27:  // DW_OP_xor
        return set(left ^ right);
      case 0x29:  // DW_OP_eq, ge, gt, le, lt, ne
        return set(left == right ? 1 : 0);
      case 0x2A:
        return set(signed_left >= signed_right ? 1 : 0);
      case 0x2B:
        return set(signed_left > signed_right ? 1 : 0);
      case 0x2C:
        return set(signed_left <= signed_right ? 1 : 0);
      case 0x2D:
        return set(signed_left < signed_right ? 1 : 0);
      case 0x2E:
        return set(left != right ? 1 : 0);
      default:
        return false;
    }
  }

  bool push(Address value) {
    stack_.push_back(value);
    return true;
  }
  bool set(Address value) {
    stack_.back() = value;
    return true;
  }

  Cursor code_;
  const ThreadRegisters& registers_;
  const ReadStack& read_;
  std::vector<Address> stack_;
};

/// Carries out programs of rows up to a place.
class RowProgram {
 public:
  RowProgram(const Function& function, Address place) : function_(function), place_(place), at_(function.begin) {}

  std::optional<Row> run() {
    if (!run(function_.begin_program)) return std::nullopt;
    first_ = row_;
    if (!run(function_.program)) return std::nullopt;
    return row_;
  }

 private:
  void set(std::uint64_t number, const Rule& rule) {
    if (number < row_.rules.size()) row_.rules[static_cast<std::size_t>(number)] = rule;
  }
  void restore(std::uint64_t number) {
    if (number < row_.rules.size()) set(number, first_.rules[static_cast<std::size_t>(number)]);
  }
  std::int64_t scaled(std::uint64_t factor) const {
    return static_cast<std::int64_t>(factor * static_cast<std::uint64_t>(function_.data_unit));
  }

  /// \return false: it is not understood
  bool run(Bytes program) {
    Cursor code(program, 0);
    while (!code.at_end()) {
      const unsigned operation = code.take<std::uint8_t>();
      const unsigned low = operation & 0x3FU;
      switch (operation >> 6U) {
        case 1:  // DW_CFA_advance_loc
          at_ += low * function_.code_unit;
          break;
        case 2:  // DW_CFA_offset
          set(low, {.kind = Rule::Kind::kAtOffset, .offset = scaled(code.unsigned_leb())});
          break;
        case 3:  // DW_CFA_restore
          restore(low);
          break;
        default:
          if (!run_long(operation, code)) return false;
      }
      if (at_ > place_) return true;
    }
    return code.good();
  }

  bool run_long(unsigned operation, Cursor& code) {
    switch (operation) {
      case 0x00:  // DW_CFA_nop
        return true;
      case 0x02:  // DW_CFA_advance_loc1, 2, 4
        at_ += code.take<std::uint8_t>() * function_.code_unit;
        return true;
      case 0x03:
        at_ += code.take<std::uint16_t>() * function_.code_unit;
        return true;
      case 0x04:
        at_ += code.take<std::uint32_t>() * function_.code_unit;
        return true;
      case 0x0A:  // DW_CFA_remember_state
        if (remembered_.size() == kMostRemembered) return false;
        remembered_.push_back(row_);
        return true;
      case 0x0B:  // DW_CFA_restore_state
        if (remembered_.empty()) return false;
        row_ = remembered_.back();
        remembered_.pop_back();
        return true;
      case 0x0C:  // DW_CFA_def_cfa
        row_.frame_register = code.unsigned_leb();
        row_.frame_offset = static_cast<std::int64_t>(code.unsigned_leb());
        row_.frame_expression = {};
        return true;
      case 0x0D:  // DW_CFA_def_cfa_register
        row_.frame_register = code.unsigned_leb();
        row_.frame_expression = {};
        return true;
      case 0x0E:  // DW_CFA_def_cfa_offset
        row_.frame_offset = static_cast<std::int64_t>(code.unsigned_leb());
        return true;
      case 0x0F:  // DW_CFA_def_cfa_expression
        row_.frame_expression = code.next(code.unsigned_leb());
        return true;
      case 0x12:  // DW_CFA_def_cfa_sf
        row_.frame_register = code.unsigned_leb();
        row_.frame_offset = scaled(static_cast<std::uint64_t>(code.signed_leb()));
        row_.frame_expression = {};
        return true;
      case 0x13:  // DW_CFA_def_cfa_offset_sf
        row_.frame_offset = scaled(static_cast<std::uint64_t>(code.signed_leb()));
        return true;
      case 0x2E:  // DW_CFA_GNU_args_size
        (void)code.unsigned_leb();
        return true;
      default:
        return run_rule(operation, code);
    }
  }

  /// The operations that begin with the number of a register.
  bool run_rule(unsigned operation, Cursor& code) {
    using Kind = Rule::Kind;
    if (operation == 0x01) return false;  // DW_CFA_set_loc, which nobody writes
    const std::uint64_t number = code.unsigned_leb();
    switch (operation) {
      case 0x05:  // DW_CFA_offset_extended
        set(number, {.kind = Kind::kAtOffset, .offset = scaled(code.unsigned_leb())});
        return true;
      case 0x06:  // DW_CFA_restore_extended
        restore(number);
        return true;
      case 0x07:  // DW_CFA_undefined
        set(number, {.kind = Kind::kUndefined});
        return true;
      case 0x08:  // DW_CFA_same_value
        set(number, {});
        return true;
      case 0x09:  // DW_CFA_register
        set(number, {.kind = Kind::kRegister, .number = code.unsigned_leb()});
        return true;
      case 0x10:  // DW_CFA_expression
        set(number, {.kind = Kind::kAtExpression, .expression = code.next(code.unsigned_leb())});
        return true;
      case 0x11:  // DW_CFA_offset_extended_sf
        set(number, {.kind = Kind::kAtOffset, .offset = scaled(static_cast<std::uint64_t>(code.signed_leb()))});
        return true;
      case 0x14:  // DW_CFA_val_offset
        set(number, {.kind = Kind::kIsOffset, .offset = scaled(code.unsigned_leb())});
        return true;
      case 0x15:  // DW_CFA_val_offset_sf
        set(number, {.kind = Kind::kIsOffset, .offset = scaled(static_cast<std::uint64_t>(code.signed_leb()))});
        return true;
      case 0x16:  // DW_CFA_val_expression
        set(number, {.kind = Kind::kIsExpression, .expression = code.next(code.unsigned_leb())});
        return true;
      default:
        return false;
    }
  }

  static constexpr std::size_t kMostRemembered = 64;

  const Function& function_;
  Address place_;
  Address at_;
  Row row_;
  Row first_;  ///< at the beginning of the function
  std::vector<Row> remembered_;
};

std::optional<Address> canonical_frame(const Row& row, const ThreadRegisters& callee, const ReadStack& read) {
  if (!row.frame_expression.empty()) return Expression(row.frame_expression, callee, read).value(std::nullopt);
  if (row.frame_register >= callee.values.size()) return std::nullopt;
  const std::optional<Address>& base = callee.values[static_cast<std::size_t>(row.frame_register)];
  return base ? std::optional(*base + static_cast<Address>(row.frame_offset)) : std::nullopt;
}

/// Empty: its rule cannot be carried out.
std::optional<Address> value_of(const Rule& rule, std::size_t number, Address frame, const ThreadRegisters& callee,
                                const ReadStack& read) {
  switch (rule.kind) {
    case Rule::Kind::kSame:
      return callee.values[number];
    case Rule::Kind::kUndefined:
      return std::nullopt;
    case Rule::Kind::kAtOffset:
      return read(frame + static_cast<Address>(rule.offset));
    case Rule::Kind::kIsOffset:
      return frame + static_cast<Address>(rule.offset);
    case Rule::Kind::kRegister:
      if (rule.number >= callee.values.size()) return std::nullopt;
      return callee.values[static_cast<std::size_t>(rule.number)];
    case Rule::Kind::kAtExpression:
      if (const auto place = Expression(rule.expression, callee, read).value(frame)) return read(*place);
      return std::nullopt;
    case Rule::Kind::kIsExpression:
      return Expression(rule.expression, callee, read).value(frame);
  }
  return std::nullopt;
}

}  // namespace

Caller caller_of(const ThreadRegisters& callee, const CallFrameTables& tables, Address bias, const ReadStack& read) {
  // Behind a call, which may be the last of its function.
  const Address place = callee.code() - bias - (callee.is_exact ? 0 : 1);
  const Address record = find_record(tables, place);
  if (record == 0) return {};
  const std::optional<Function> function = read_function(tables, record);
  if (!function || place < function->begin || place >= function->end) return {};
  const std::optional<Row> row = RowProgram(*function, place).run();
  if (!row || function->return_register != ThreadRegisters::kCode) return {};
  if (row->rules[ThreadRegisters::kCode].kind == Rule::Kind::kUndefined) return {.kind = Caller::Kind::kNone};
  const std::optional<Address> frame = canonical_frame(*row, callee, read);
  if (!frame) return {.kind = Caller::Kind::kNotRead};
  Caller caller{.kind = Caller::Kind::kKnown};
  for (std::size_t number = 0; number < callee.values.size(); ++number) {
    caller.registers.values[number] = value_of(row->rules[number], number, *frame, callee, read);
  }
  // The stack pointer has a rule of its own only where a signal came.
  const bool has_rule = row->rules[ThreadRegisters::kStackPointer].kind != Rule::Kind::kSame;
  if (!has_rule) caller.registers.values[ThreadRegisters::kStackPointer] = *frame;
  caller.registers.is_exact = function->is_signal_frame;
  if (!caller.registers.values[ThreadRegisters::kCode]) return {.kind = Caller::Kind::kNotRead};
  if (caller.registers.code() == 0) return {.kind = Caller::Kind::kNone};
  const bool goes_on = caller.registers.stack() > callee.stack() || function->is_signal_frame;
  return goes_on ? caller : Caller{};
}

}  // namespace lrun::launcher
