internal import CallBasics

extension SIPServer {
    /// ACKs that wait for names at once; those beyond are lost.
    static let waitingAckLimit = 1024

    /// Passes a request on to each of its targets.
    ///
    /// Source: RFC 3261, section 16.6
    mutating func forward(
        _ request: SIPMessage,
        to targets: [ForwardTarget],
        _ mark: Bytes,
        _ transaction: TransactionID,
        on flow: Flow,
        at now: MediaTime
    ) {
        let isDoubled = takeRule(for: request) { $0 == .duplicate } != nil
        let id = forwards.insert { _ in Forward(request, transaction, on: flow, mark, isDoubled: isDoubled) }
        forwardOfTransaction[transaction] = id
        let isSecure = request.isBoundForSIPS
        var starting: [BranchID] = []
        for target in targets {
            guard let passed = try? passedOn(request, to: target) else { continue }
            let flow = target.path.isEmpty ? target.flow : nil
            let made = Branch(passed, .forward(id), flow: flow, isSecure: isSecure, sleeper: target.sleeper)
            starting.append(branches.insert { _ in made })
        }
        forwards[id]?.branches = starting
        for branch in starting {
            if let sleeper = branches[branch]?.sleeper {
                park(branch, for: sleeper, at: now)
            } else {
                start(branch, at: now)
            }
        }
        finishIfOver(id, at: now)
    }

    /// Passes an ACK on, which gets no answer.
    mutating func passOn(ack: SIPMessage, on flow: Flow?, at now: MediaTime) {
        guard waitingAckCount < Self.waitingAckLimit else { return }
        waitingAckCount += 1
        let made = Branch(ack, .acknowledgement, flow: flow, isSecure: ack.isBoundForSIPS)
        start(branches.insert { _ in made }, at: now)
    }

    /// Takes a way out of its table.
    private mutating func remove(_ id: BranchID) -> Branch? {
        let branch = branches.remove(id)
        if case .acknowledgement? = branch?.purpose { waitingAckCount -= 1 }
        if let sleeper = branch?.sleeper { unpark(id, of: sleeper.user) }
        return branch
    }

    mutating func start(_ id: BranchID, at now: MediaTime) {
        guard let branch = branches[id] else { return }
        if let flow = branch.flow, flows.isUsable(flow), !branch.isSecure || flow.transport == .tls {
            return depart(id, on: flow, at: now)
        }
        do {
            let routes = try branch.request.list(.route, as: NameAddress.self)
            var uri = try branch.request.requestURI()
            if let route = routes.first { uri = route.uri }
            let families: [ResolutionWishes.Family] = locals.contains { !$0.isIPv4 } ? [.ipv6, .ipv4] : [.ipv4]
            let wishes = ResolutionWishes(
                transports: flows.transports,
                isSecure: branch.isSecure || branch.request.isBoundForSIPS,
                families: families
            )
            branchOfLookup[resolver.resolve(uri, wishes, at: now)] = id
        } catch {
            end(id, status: error.code.statusCode ?? 400, at: now)
        }
    }

    /// The names have answered.
    mutating func resolved(_ id: BranchID, _ resolution: Resolution, at now: MediaTime) {
        branches[id]?.targets = TargetList(resolution.targets)
        advance(id, at: now)
    }

    private mutating func advance(_ id: BranchID, at now: MediaTime) {
        while var branch = branches[id], var list = branch.targets {
            guard let target = list.next(closed, at: now) else { return end(id, status: 503, at: now) }
            let choice = flows.flow(for: branch.request, to: target, allowing: flows.transports, at: now)
            if choice == nil { list.fail(.unreachable, &closed, at: now) }
            branch.targets = list
            branches[id] = branch
            if let choice { return depart(id, on: choice.flow, at: now) }
        }
    }

    private mutating func depart(_ id: BranchID, on flow: Flow, at now: MediaTime) {
        guard var branch = branches[id] else { return }
        do {
            let forwardID: ForwardID
            switch branch.purpose {
            case .forward(let id): forwardID = id
            case .acknowledgement:
                _ = remove(id)
                try branch.request.prepend(.via, transactions.makeVia(on: flow))
                return send(branch.request.bytes, on: flow, at: now)
            case .text:
                let transaction = try transactions.send(branch.request, on: flow, at: now)
                return note(transaction, of: id, on: flow)
            }
            guard let forward = forwards[forwardID], !forward.isOver else { return end(id, status: 487, at: now) }
            var request = branch.request
            try recordRoute(in: &request, from: forward.flow, to: flow, isSecure: branch.isSecure)
            // What others wait for leaves first, so that the next that does is this one.
            while forward.isDoubled, let output = transactions.poll() { handle(output, at: now) }
            let transaction = try transactions.send(request, on: flow, marked: forward.mark, at: now)
            note(transaction, of: id, on: flow)
            if request.method == .invite { branches.setDeadline(of: id, to: now + configuration.ringPatience) }
            if forward.isDoubled, case .send(let bytes, let flow)? = transactions.poll() {
                for _ in 0..<2 { send(bytes, on: flow, at: now) }
            }
        } catch {
            end(id, status: error.code.statusCode ?? 400, at: now)
        }
    }

    /// A way has left by a flow.
    private mutating func note(_ transaction: TransactionID, of id: BranchID, on flow: Flow) {
        guard var branch = branches[id] else { return }
        if let former = branch.transaction { branchOfTransaction[former] = nil }
        (branch.transaction, branch.flow, branch.isHeard) = (transaction, flow, false)
        branchOfTransaction[transaction] = id
        branches[id] = branch
    }

    // MARK: What comes back

    /// A response of a way.
    ///
    /// Source: RFC 3261, section 16.7
    mutating func receive(_ received: SIPMessage, of id: BranchID, on flow: Flow, at now: MediaTime) {
        guard var branch = branches[id], let status = received.statusCode else { return }
        if case .text = branch.purpose { return status < 200 ? () : end(id, received, at: now) }
        guard let forwardID = branch.forward, let forward = forwards[forwardID] else { return }
        var response = received
        response.removeFirst(.via)
        if status < 200 {
            branch.isHeard = true
            branches[id] = branch
            guard status > 100 else { return }
            if branch.request.method == .invite { branches.setDeadline(of: id, to: now + configuration.ringPatience) }
            if !forward.isAnswered { transactions.respond(response, to: forward.transaction, at: now) }
            return
        }
        if let failure = TargetFailure(response), branch.targets != nil {
            return goOn(id, failure, response, at: now)
        }
        guard status < 300 else { return end(id, response, at: now) }
        transactions.respond(response, to: forward.transaction, at: now)
        guard branch.request.method == .invite else {
            forwards[forwardID]?.isAnswered = true
            return end(id, response, at: now)
        }
        guard !branch.isAccepted else { return }
        branch.isAccepted = true
        branches[id] = branch
        branches.setDeadline(of: id, to: now + timers.patience)
        forwards[forwardID]?.isAnswered = true
        takeBack(forward.branches.filter { $0 != id }, at: now)
    }

    /// The transaction of a way has ended without a final response.
    mutating func fail(_ id: BranchID, _ failure: TransactionFailure, at now: MediaTime) {
        guard let branch = branches[id] else { return }
        if failure == .timeout, !branch.isHeard, let flow = branch.flow { flows.noteUnanswered(on: flow, at: now) }
        if branch.targets == nil, failure == .unreachable, !branch.isHeard {
            // Its flow has died: by names, then.
            branches[id]?.flow = nil
            return start(id, at: now)
        }
        goOn(id, TargetFailure(failure), nil, at: now)
    }

    private mutating func goOn(_ id: BranchID, _ failure: TargetFailure, _ response: SIPMessage?, at now: MediaTime) {
        guard var branch = branches[id] else { return }
        if var list = branch.targets {
            if failure == .unreachable,
                let flow = flows.datagramFlow(insteadOf: branch.flow, to: list.current, at: now)
            {
                return depart(id, on: flow, at: now)
            }
            list.fail(failure, &closed, at: now)
            branch.targets = list
            branches[id] = branch
            if list.hasNext { return advance(id, at: now) }
        }
        if let response { return end(id, response, at: now) }
        end(id, status: failure == .timeout ? 408 : 503, at: now)
    }

    /// Timer C, the end of the time in which it may still answer then, or that in which a 2xx may come again.
    mutating func handleTimeout(of id: BranchID, at now: MediaTime) {
        guard let branch = branches[id] else { return }
        branches.setDeadline(of: id, to: nil)
        if branch.isAccepted { return end(id, nil, at: now) }
        if let sleeper = branch.sleeper {
            tell(.gaveUp(user: sleeper.user, callID: branch.request.callID?.text ?? ""))
            return end(id, status: 480, at: now)
        }
        guard branch.isHeard, let transaction = branch.transaction else { return end(id, status: 408, at: now) }
        branches[id]?.isHeard = false
        branches.setDeadline(of: id, to: now + timers.patience)
        transactions.cancel(transaction, at: now)
    }

    /// Ends a way for which the server itself finds the answer.
    mutating func end(_ id: BranchID, status: Int, at now: MediaTime) {
        let forward = branches[id]?.forward.flatMap { forwards[$0] }
        let response = forward.flatMap { forward in
            try? forward.request.response(
                status: status,
                reason: SIPStatus.phrase(status),
                tag: generator.next().hexadecimal
            )
        }
        end(id, response, at: now)
    }

    private mutating func end(_ id: BranchID, _ response: SIPMessage?, at now: MediaTime) {
        guard let branch = remove(id) else { return }
        if let transaction = branch.transaction { branchOfTransaction[transaction] = nil }
        if case .text(let text, let attempt) = branch.purpose {
            return handleText(text, attempt: attempt, status: response?.statusCode, at: now)
        }
        guard let forwardID = branch.forward, var forward = forwards[forwardID] else { return }
        forward.branches.removeAll { $0 == id }
        if let response { forward.note(response) }
        let others = forward.branches
        forwards[forwardID] = forward
        // Nobody else is to be asked after a 6xx.
        if let status = response?.statusCode, status >= 600 { takeBack(others, at: now) }
        finishIfOver(forwardID, at: now)
    }

    /// Answers a request whose ways are all at their end.
    private mutating func finishIfOver(_ id: ForwardID, at now: MediaTime) {
        guard let forward = forwards[id], forward.branches.isEmpty else { return }
        forwards.remove(id)
        forwardOfTransaction[forward.transaction] = nil
        guard !forward.isAnswered else { return }
        do {
            guard !forward.isTakenBack, let answer = try forward.answer() else {
                return respond(forward.isTakenBack ? 487 : 500, to: forward.request, forward.transaction, at: now)
            }
            // That one target is overloaded says nothing of the server.
            guard answer.statusCode != 503 else {
                return respond(500, to: forward.request, forward.transaction, at: now)
            }
            transactions.respond(answer, to: forward.transaction, at: now)
        } catch {
            respond(500, to: forward.request, forward.transaction, at: now)
        }
    }

    /// The sender took an INVITE back, or has gone; its ways end by their 487.
    mutating func takeBack(_ transaction: TransactionID, reason: ReasonHeader? = nil, at now: MediaTime) {
        guard let id = forwardOfTransaction[transaction], let forward = forwards[id], !forward.isAnswered else {
            return
        }
        forwards[id]?.isTakenBack = true
        takeBack(forward.branches, reason: reason, at: now)
    }

    private mutating func takeBack(_ ids: [BranchID], reason: ReasonHeader? = nil, at now: MediaTime) {
        for id in ids {
            guard let branch = branches[id], branch.request.method == .invite, !branch.isAccepted else { continue }
            if let transaction = branch.transaction {
                transactions.cancel(transaction, reason: reason, at: now)
            } else {
                end(id, status: 487, at: now)
            }
        }
    }
}
