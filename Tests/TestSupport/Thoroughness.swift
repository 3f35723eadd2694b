/// Whether the compiler optimises; where it does not, a loop takes ten times as long.
public let isOptimised: Bool = {
    var isOptimised = true
    assert({ isOptimised = false }() == ())
    return isOptimised
}()

/// What a test takes that computes for long, or has many cases of one kind: the whole where the compiler optimises, else a part.
///
/// `Scripts/test --all` runs the whole, the debug run the part: fewer rows of a table or a shorter signal, with the same
/// assertions.
public func thorough<Value>(_ whole: @autoclosure () -> Value, quick part: @autoclosure () -> Value) -> Value {
    isOptimised ? whole() : part()
}

/// What a test takes that has very many cases of one kind: all where the compiler optimises, else each `step`-th.
public func thorough<Whole: Sequence>(_ whole: Whole, each step: Int) -> [Whole.Element] {
    thorough(Array(whole), quick: whole.enumerated().filter { $0.offset % step == 0 }.map(\.element))
}
