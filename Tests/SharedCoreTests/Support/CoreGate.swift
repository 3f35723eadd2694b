/// Where something waits until the test lets it go on.
actor CoreGate {
    private var isOpen = false
    private var isReached = false
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var watching: [CheckedContinuation<Void, Never>] = []

    /// Waits until the gate is open.
    func pass() async {
        isReached = true
        for watcher in watching { watcher.resume() }
        watching = []
        if !isOpen { await withCheckedContinuation { waiting.append($0) } }
    }

    /// Waits until somebody is at the gate.
    func reached() async {
        if !isReached { await withCheckedContinuation { watching.append($0) } }
    }

    func open() {
        isOpen = true
        for waiter in waiting { waiter.resume() }
        waiting = []
    }
}
